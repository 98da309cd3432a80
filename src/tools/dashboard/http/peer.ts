// A Request does not carry the client's address. Code that builds one from a connection notes the address here.
const peers = new WeakMap<Request, string>();

/** Notes the address that a request came from. */
export function setPeer(request: Request, address: string): void {
  peers.set(request, address);
}

/** The address that a request came from; undefined if nobody noted one. */
export function peerOf(request: Request): string | undefined {
  return peers.get(request);
}
