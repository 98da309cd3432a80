// @ts-check
import { html, render, useEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { Connection } from "./parts/connection.js";
import { ConsumersPage } from "./pages/consumers-page.js";
import { DeadPage } from "./pages/dead-page.js";
import { Dialog } from "./parts/dialog.js";
import { live } from "./data/live.js";
import { useLoaded } from "./data/loaded.js";
import { MessagePage } from "./pages/message-page.js";
import { MessagesPage } from "./pages/messages-page.js";
import { QuarantinePage } from "./pages/quarantine-page.js";
import { QueueFrame } from "./pages/queue-frame.js";
import { QueuePage } from "./pages/queue-page.js";
import { QueuesPage } from "./pages/queues-page.js";
import { HOME, useRoute } from "./data/route.js";
import { Shell } from "./parts/shell.js";
import { StateLine } from "./parts/state-line.js";
import { visible } from "./parts/text.js";

// Each component is one element: the Preact that is in vendor/ may put what several begin with in a wrong order.

const PAGES = {
  overview: QueuePage,
  messages: MessagesPage,
  message: MessagePage,
  dead: DeadPage,
  quarantine: QuarantinePage,
  consumers: ConsumersPage,
};

function App() {
  const route = useRoute();
  const session = useLoaded("api/session");
  const [question, setQuestion] = useState();
  const [said, setSaid] = useState("");
  const shell = useMemo(
    () => ({ session: session.data, ask: setQuestion, say: setSaid }),
    [session.data],
  );

  useEffect(() => live.follow(route.queue), [route.queue]);
  useArrival(route, () => setSaid(""));

  return html`<${Shell} value=${shell}>
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header>
      <a class="brand" href=${HOME}>Delayline</a>
      <${Connection} />
    </header>
    <main id="main" tabindex="-1">
      <p class=${said === "" ? "said unseen" : "said"} role="status">${said}</p>
      ${
        session.data === undefined
          ? html`<${StateLine} loaded=${session} />`
          : html`<div>
              ${
                session.data.readOnly &&
                html`<p class="read-only">
                  Read-only: this dashboard was started without leave to change anything.
                </p>`
              }
              <${Page} route=${route} />
            </div>`
      }
    </main>
    <footer>
      ${session.data === undefined ? "" : `Delayline ${session.data.version}. `}Times are on this device's clock, distances on
      the Redis server's.
    </footer>
    <${Dialog} question=${question} onClose=${() => setQuestion(undefined)} onDone=${setSaid} />
  <//>`;
}

function Page({ route }) {
  if (route.page === "queues") return html`<${QueuesPage} />`;
  const Content = PAGES[route.page];
  if (Content === undefined) {
    return html`<div>
      <h1 tabindex="-1">There is no such page</h1>
      <p><a href=${HOME}>All queues</a></p>
    </div>`;
  }
  return html`<${QueueFrame} name=${route.queue} page=${route.page} key=${route.queue}>
    <${Content} name=${route.queue} params=${route.params} key=${route.page} />
  <//>`;
}

/** Another page begins at its heading, for the eye, the keyboard and the screen reader. */
function useArrival({ page, queue }, onArrival) {
  const isFirst = useRef(true);
  useEffect(() => {
    const place =
      queue === undefined
        ? "Queues"
        : `${page === "overview" ? "" : `${page} · `}${visible(queue)}`;
    document.title = `${place} · Delayline`;
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    onArrival();
    scrollTo(0, 0);
    document.querySelector("h1")?.focus({ preventScroll: true });
  }, [page, queue]);
}

// A fragment would be taken for a route by the next reload.
function skip(event) {
  event.preventDefault();
  document.querySelector("main").focus();
}

render(html`<${App} />`, document.querySelector("#app"));
