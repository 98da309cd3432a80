/** A command for a shell. It holds no password: that belongs into `REDISCLI_AUTH`. */
export function redisCli(address: string, command: string): string {
  const [, host, port] = /^(.*):(\d+)$/.exec(address) ?? [];
  const where = host === undefined ? `-s ${address}` : `-h ${host} -p ${port}`;
  return `redis-cli ${where} ${command}`;
}

/** A key or a name in single quotes, for a shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
