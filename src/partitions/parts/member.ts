/** What a process does with a queue, as far as its partitions are shared out. */
export interface Roles {
  /** It moves due messages. */
  readonly moves?: boolean;
  /** It consumes exclusively. */
  readonly isExclusive?: boolean;
  /** It consumes exclusively no more, but handlers are at work still. */
  readonly isReleasing?: boolean;
  /** What it takes from: the ready LIST, or the stream as one of a group; see {@link takeOf}. */
  readonly takes?: readonly string[];
}

/** A process that has a queue open. */
export interface Member {
  readonly name: string;
  readonly roles: Roles;
  /** How many milliseconds ago it was last seen. */
  readonly idle: number;
}

const LETTERS = { moves: "m", isExclusive: "x", isReleasing: "r" } as const;

/** What a process takes from: the ready LIST, or with a group the stream. */
export function takeOf(group?: string): string {
  return group === undefined ? "list" : `group ${group}`;
}

/** A member as it is written in Redis: its roles, its name, and what it takes from. */
export function formatMember({ name, roles }: Pick<Member, "name" | "roles">): string {
  const letters = Object.entries(LETTERS).map(([role, letter]) =>
    roles[role as keyof typeof LETTERS] === true ? letter : "",
  );
  const takes = (roles.takes ?? []).toSorted().map(encodeURIComponent);
  return `${letters.join("")}:${name}:${takes.join(",")}`;
}

/** Reads a member; undefined if it is none. */
export function parseMember(text: string, idle: number): Member | undefined {
  const [, letters, name, takes] = /^([mxr]*):([^:]+):(.*)$/s.exec(text) ?? [];
  if (letters === undefined || name === undefined || takes === undefined) return undefined;
  try {
    return {
      name,
      idle,
      roles: {
        moves: letters.includes(LETTERS.moves),
        isExclusive: letters.includes(LETTERS.isExclusive),
        isReleasing: letters.includes(LETTERS.isReleasing),
        takes: takes === "" ? [] : takes.split(",").map(decodeURIComponent),
      },
    };
  } catch {
    return undefined;
  }
}
