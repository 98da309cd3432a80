/** What a process does with a queue, as far as its partitions are shared out. */
export interface Roles {
  /** It moves due messages. */
  readonly moves?: boolean;
  /** It takes messages. */
  readonly takes?: boolean;
  /** It consumes exclusively. */
  readonly isExclusive?: boolean;
}

/** A process that has a queue open. */
export interface Member {
  readonly name: string;
  readonly roles: Roles;
  /** How many milliseconds ago it was last seen. */
  readonly idle: number;
}

const LETTERS = { moves: "m", takes: "t", isExclusive: "x" } as const;

/** A member as it is written in Redis: its roles, and its name. */
export function formatMember({ name, roles }: Pick<Member, "name" | "roles">): string {
  const letters = Object.entries(LETTERS).map(([role, letter]) =>
    roles[role as keyof Roles] === true ? letter : "",
  );
  return `${letters.join("")}:${name}`;
}

/** Reads a member; undefined if it is none. */
export function parseMember(text: string, idle: number): Member | undefined {
  const [, letters, name] = /^([mtx]*):(.+)$/s.exec(text) ?? [];
  if (letters === undefined || name === undefined) return undefined;
  return {
    name,
    idle,
    roles: {
      moves: letters.includes(LETTERS.moves),
      takes: letters.includes(LETTERS.takes),
      isExclusive: letters.includes(LETTERS.isExclusive),
    },
  };
}
