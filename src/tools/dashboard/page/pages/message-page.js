// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { MessageView } from "../sections/message-view.js";

/** One message of a queue, by id or key. */
export function MessagePage({ name, params: { id, key } }) {
  return html`<${MessageView} key=${`${id} ${key}`} name=${name} id=${id} key_=${key} />`;
}
