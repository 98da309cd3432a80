/** The payload of the messages: some 100 bytes of MessagePack. */
export interface Order {
  readonly number: number;
  readonly customer: string;
  readonly items: readonly string[];
}

export function makeOrder(number: number): Order {
  const customer = "Ada Lovelace, 12 St James's Square, London";
  return { number, customer, items: ["engine", "punched cards"] };
}
