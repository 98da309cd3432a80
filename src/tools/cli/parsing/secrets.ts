/** The passwords in some URLs of Redis, as written and decoded, so that they can be masked in messages. */
export function secretsIn(urls: readonly string[]): string[] {
  const secrets = urls.flatMap((url) => {
    const [, authority] = /^[a-z]+:\/\/[^/@]*?:(.*)@[^@]*$/s.exec(url) ?? [];
    // ioredis also reads options from the query.
    const [, query] = /[?&]password=([^&#]*)/s.exec(url) ?? [];
    return [authority, query].flatMap((one) => (one === undefined ? [] : [one, decoded(one)]));
  });
  return secrets.filter((secret) => secret !== "");
}

function decoded(written: string): string {
  try {
    return decodeURIComponent(written);
  } catch {
    return written;
  }
}
