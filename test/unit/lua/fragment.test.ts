import { describe, expect, test } from "vitest";
import { defineFragment, inOrder, type Fragment } from "../../../src/lua/fragment.ts";

const fragment = (lua: string, ...needs: Fragment[]) => defineFragment({ needs, lua });
const namesOf = (fragments: readonly Fragment[]) => inOrder(fragments).map(({ lua }) => lua);

describe("the fragments of a script", () => {
  const bytes = fragment("bytes");
  const address = fragment("address", bytes);
  const locate = fragment("locate", bytes, address);

  test("stand after those that they need, each once", () => {
    expect(namesOf([locate])).toEqual(["bytes", "address", "locate"]);
    expect(namesOf([locate, bytes, address, locate])).toEqual(["bytes", "address", "locate"]);
    const find = fragment("find", locate, address);
    const view = fragment("view");
    expect(namesOf([view, find, locate])).toEqual(["view", "bytes", "address", "locate", "find"]);
  });

  test("otherwise stand in the order in which the script names them", () => {
    expect(namesOf([fragment("b"), fragment("a"), fragment("c")])).toEqual(["b", "a", "c"]);
    expect(namesOf([])).toEqual([]);
  });

  test("must not need themselves", () => {
    const needs: Fragment[] = [];
    const first = fragment("first", ...needs);
    const second = fragment("second", first);
    const circular: Fragment = { ...first, needs };
    needs.push(fragment("third", second, circular));
    expect(() => inOrder([circular])).toThrow(TypeError);
  });
});
