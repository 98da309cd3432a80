/** Something that waits until it is let go. */
export class Gate {
  open: () => void = () => {};
  readonly opened = new Promise<void>((resolve) => (this.open = resolve));
}
