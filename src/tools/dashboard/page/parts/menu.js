// @ts-check
import { html, useLayoutEffect, useRef, useState } from "../../vendor/preact-htm.js";

/** Where the focus goes from an item, by key: from the place of an item among so many. */
const MOVES = {
  ArrowDown: (at, count) => (at + 1) % count,
  ArrowUp: (at, count) => (at + count - 1) % count,
  Home: () => 0,
  End: (_, count) => count - 1,
};

/**
 * A button that opens a menu: `items` are `{ label, isDestructive, act }`. Arrow keys move in it, and Escape closes it. What
 * cannot be undone comes last, apart from the rest. `about`: what it concerns, for screen readers.
 */
export function Menu({ label, about, items }) {
  const [isOpen, setOpen] = useState(false);
  const box = useRef();
  const entries = () => [...box.current.querySelectorAll("[role=menuitem]")];
  const close = () => {
    setOpen(false);
    box.current.querySelector("button").focus();
  };
  // Before the next key can come.
  useLayoutEffect(() => {
    if (!isOpen) return undefined;
    entries()[0].focus();
    const leave = ({ target }) => {
      if (!box.current.contains(target)) setOpen(false);
    };
    addEventListener("pointerdown", leave);
    addEventListener("focusin", leave);
    return () => {
      removeEventListener("pointerdown", leave);
      removeEventListener("focusin", leave);
    };
  }, [isOpen]);
  const press = (event) => {
    if (event.key === "Escape" && isOpen) close();
    else if (event.key === "ArrowDown" && !isOpen) setOpen(true);
    else if (isOpen && Object.hasOwn(MOVES, event.key)) {
      const all = entries();
      all[MOVES[event.key](all.indexOf(document.activeElement), all.length)].focus();
    } else return;
    event.preventDefault();
  };
  const ordered = items.toSorted((a, b) => Number(a.isDestructive) - Number(b.isDestructive));
  const name = about === undefined ? label : `${label}: ${about}`;
  return html`<div class="menu" ref=${box} onKeyDown=${press}>
    <button
      type="button"
      aria-haspopup="menu"
      aria-expanded=${isOpen}
      aria-label=${name}
      onClick=${() => setOpen(!isOpen)}
    >
      ${label}
    </button>
    ${
      isOpen &&
      html`<div role="menu" aria-label=${name}>
        ${ordered.map(
          (item) =>
            html`<button
              key=${item.label}
              type="button"
              role="menuitem"
              tabindex="-1"
              class=${item.isDestructive ? "danger" : ""}
              onClick=${() => {
                close();
                item.act();
              }}
            >
              ${item.label}
            </button>`,
        )}
      </div>`
    }
  </div>`;
}
