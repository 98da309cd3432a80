/** The roles of a process in a queue that matter for dividing the partitions among processes. */
export interface Roles {
  /** It transfers due messages. */
  readonly moves?: boolean;
  /** It consumes exclusively. */
  readonly isExclusive?: boolean;
  /** It has stopped consuming exclusively, but some of its handlers still run. */
  readonly isReleasing?: boolean;
  /** It works on a change of the number of partitions. */
  readonly isChanging?: boolean;
  /** The sources that it takes from; see {@link takeOf}. */
  readonly takes?: readonly string[];
}

/** A process that has a queue open. */
export interface Member {
  readonly name: string;
  readonly roles: Roles;
  /** Milliseconds since its last sign of life. */
  readonly idle: number;
}

/** Milliseconds without a sign of life after which a process is no longer a member. */
export const MEMBER_TIMEOUT = 7000;

const LETTERS = { moves: "m", isExclusive: "x", isReleasing: "r", isChanging: "c" } as const;

/** Names what a process takes from: the ready LIST, or the stream as a consumer of `group`. */
export function takeOf(group?: string): string {
  return group === undefined ? "list" : `group ${group}`;
}

/** Writes a member as Redis holds it: `roles:name:takes`. */
export function formatMember({ name, roles }: Pick<Member, "name" | "roles">): string {
  const letters = Object.entries(LETTERS).map(([role, letter]) =>
    roles[role as keyof typeof LETTERS] === true ? letter : "",
  );
  const takes = (roles.takes ?? []).toSorted().map(encodeURIComponent);
  return `${letters.join("")}:${name}:${takes.join(",")}`;
}

/** Reads a member; undefined for a text that {@link formatMember} cannot have written. */
export function parseMember(text: string, idle: number): Member | undefined {
  const [, letters, name, takes] = /^([mxrc]*):([^:]+):(.*)$/s.exec(text) ?? [];
  if (letters === undefined || name === undefined || takes === undefined) return undefined;
  try {
    return {
      name,
      idle,
      roles: {
        moves: letters.includes(LETTERS.moves),
        isExclusive: letters.includes(LETTERS.isExclusive),
        isReleasing: letters.includes(LETTERS.isReleasing),
        isChanging: letters.includes(LETTERS.isChanging),
        takes: takes === "" ? [] : takes.split(",").map(decodeURIComponent),
      },
    };
  } catch {
    return undefined;
  }
}
