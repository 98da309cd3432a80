// A Request does not tell who has sent it. Who makes one from a connection does.
const peers = new WeakMap<Request, string>();

/** Notes the address that a request came from. */
export function setPeer(request: Request, address: string): void {
  peers.set(request, address);
}

/** The address that a request came from; undefined if whoever made the request does not tell. */
export function peerOf(request: Request): string | undefined {
  return peers.get(request);
}
