/** A client of ioredis, of any copy and version, as far as a clock looks at it. */
export interface Connection {
  readonly isCluster: boolean;
  readonly status: string;
  readonly options: object;
  /** Of a Cluster. */
  nodes?(role: "all" | "master"): Connection[];
  time(): Promise<(number | string)[]>;
  eval(script: string, keyCount: number, ...words: (string | number)[]): Promise<unknown>;
  duplicate(...overrides: object[]): Connection;
  publish(channel: string, message: string): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  on(event: "error", listener: () => void): unknown;
  on(event: "message", listener: (channel: string, message: string) => void): unknown;
  quit(): Promise<unknown>;
  disconnect(): void;
}

/** A command of ioredis. */
export interface SentCommand {
  readonly name: string;
  readonly args: readonly unknown[];
}

/** The commands that ioredis has sent and whose replies have not come. Its types hide them, but every version has them. */
interface Sending {
  readonly commandQueue?: {
    readonly length: number;
    peekAt(index: number): { readonly command: SentCommand } | undefined;
  };
}

/** What a connection waits for, in words; the command if that is only a blocking read; undefined if for nothing. */
export function awaitedBy(connection: Connection): string | SentCommand | undefined {
  if (connection.isCluster) {
    if (isConnecting(connection)) return "a connection to the Cluster";
    return connection
      .nodes?.("all")
      .map(awaitedBy)
      .find((what) => typeof what === "string");
  }
  if (isConnecting(connection)) return "a connection to Redis";
  if (connection.status !== "ready") return undefined;
  const { commandQueue } = connection as Sending;
  let read: SentCommand | undefined;
  for (let i = 0; i < (commandQueue?.length ?? 0); i++) {
    const command = commandQueue?.peekAt(i)?.command;
    if (command === undefined) continue;
    if (!isBlock(command)) return `Redis's reply to ${command.name}`;
    read = command;
  }
  return read;
}

/** Whether it will be of use in a moment. A connection that is lost may never be. */
function isConnecting({ status }: Connection): boolean {
  return status === "connecting" || status === "connect";
}

/** Whether Redis replies to a command only when there is something, or its time is over. */
function isBlock({ name, args }: SentCommand): boolean {
  if (/^b[lrz]/.test(name)) return true;
  return name.startsWith("xread") && args.some((word) => /^block$/i.test(String(word)));
}
