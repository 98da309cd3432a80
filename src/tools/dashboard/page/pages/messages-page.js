// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { useList } from "../data/list.js";
import { useQueue } from "../data/live.js";
import { addressOf } from "../data/route.js";
import { Instant } from "../parts/instant.js";
import { PAGE, Pager } from "../parts/pager.js";
import { StateLine } from "../parts/state-line.js";
import { Table } from "../parts/table.js";
import { Text, visible } from "../parts/text.js";

const COLUMNS = [{ label: "Message" }, { label: "State" }, { label: "Due" }, { label: "Id" }];

/** The delayed messages of a queue by deadline, or those in any state whose keys begin with a prefix. */
export function MessagesPage({ name, params }) {
  const { prefix = "", after } = params;
  const queue = useQueue(name);
  const path = queuePath(name, "messages", { prefix, after, limit: PAGE });
  const numbers = [queue?.delayed, queue?.retries, queue?.nextDeadline];
  const loaded = useList(path, numbers, after === undefined);
  const { messages = [], next } = loaded.data ?? {};
  const caption =
    prefix === ""
      ? "Delayed messages, by deadline"
      : `Messages in any state with keys beginning with ${visible(prefix)}`;
  return html`<div>
    <h2>${prefix === "" ? "Delayed messages" : "Messages"}</h2>
    <div class="searches">
      <${PrefixSearch} key=${prefix} name=${name} prefix=${prefix} />
      <${MessageSearch} name=${name} />
    </div>
    <${StateLine}
      loaded=${loaded}
      isEmpty=${messages.length === 0}
      empty=${
        next
          ? "No match so far. The search continues on the next page."
          : prefix === ""
            ? "No delayed messages."
            : "No message has a key that begins with this. Ready messages of a plain queue have none."
      }
    />
    ${
      messages.length > 0 &&
      html`<${Table} caption=${caption} columns=${COLUMNS}>
        ${messages.map((message) => html`<${MessageRow} key=${rowKeyOf(message)} name=${name} message=${message} />`)}
      <//>`
    }
    <${Pager}
      name=${name}
      page="messages"
      params=${params}
      next=${next}
      list=${`${name}\n${prefix}`}
    />
  </div>`;
}

/** In each group a message may be in another state. */
function rowKeyOf({ id, state, group }) {
  return `${id} ${state} ${group}`;
}

function MessageRow({ name, message }) {
  const { id, key, deadline, state } = message;
  return html`<tr>
    <th scope="row">
      <a href=${addressOf(name, "message", { id })}><${Text} of=${key ?? id} /></a>
    </th>
    <td>${state}</td>
    <td><${Instant} at=${deadline} /></td>
    <td class="id"><${Text} of=${id} /></td>
  </tr>`;
}

function PrefixSearch({ name, prefix }) {
  const search = (event) => {
    event.preventDefault();
    const wanted = new FormData(event.target).get("prefix");
    location.hash = addressOf(name, "messages", { prefix: wanted });
  };
  return html`<form role="search" aria-label="Search by key" onSubmit=${search}>
    <label for="prefix">Key begins with</label>
    <input
      id="prefix"
      name="prefix"
      type="search"
      defaultValue=${prefix}
      autocomplete="off"
      spellcheck=${false}
    />
    <button type="submit">Search</button>
  </form>`;
}

function MessageSearch({ name }) {
  const open = (event) => {
    event.preventDefault();
    const fields = new FormData(event.target);
    const by = /** @type {string} */ (fields.get("by"));
    location.hash = addressOf(name, "message", { [by]: fields.get("wanted") });
  };
  return html`<form role="search" aria-label="Find a message" onSubmit=${open}>
    <label for="wanted">Find a message in any state</label>
    <select name="by" aria-label="Find by">
      <option value="key">by key</option>
      <option value="id">by id</option>
    </select>
    <input id="wanted" name="wanted" required autocomplete="off" spellcheck=${false} />
    <button type="submit">Find</button>
  </form>`;
}
