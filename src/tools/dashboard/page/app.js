// @ts-check
import { html, render, useEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { live } from "./data/live.js";
import { useLoaded } from "./data/loaded.js";
import { HOME, NAMED_VIEWS, useRoute } from "./data/route.js";
import { STATES } from "./data/states.js";
import { BusyPage } from "./pages/busy-page.js";
import { ConsumersPage } from "./pages/consumers-page.js";
import { DoctorPage } from "./pages/doctor-page.js";
import { FindPage } from "./pages/find-page.js";
import { ListPage } from "./pages/list-page.js";
import { LogPage } from "./pages/log-page.js";
import { MessagePage } from "./pages/message-page.js";
import { MonthPage } from "./pages/month-page.js";
import { PayloadPage, ReadyPage } from "./pages/payload-page.js";
import { QueueFrame } from "./pages/queue-frame.js";
import { QueuePage } from "./pages/queue-page.js";
import { QueuesPage } from "./pages/queues-page.js";
import { RedisPage } from "./pages/redis-page.js";
import { SchedulesPage } from "./pages/schedules-page.js";
import { Bar } from "./parts/bar.js";
import { Dialog } from "./parts/dialog.js";
import { Shell } from "./parts/shell.js";
import { StateLine } from "./parts/state-line.js";
import { visible } from "./parts/text.js";

// Each component renders one element: the version of Preact in vendor/ may put the elements of a fragment in the
// wrong order.

/** The views of all queues. */
const VIEWS = {
  queues: QueuesPage,
  find: FindPage,
  busy: BusyPage,
  month: MonthPage,
  doctor: DoctorPage,
  redis: RedisPage,
};

/** The pages of one queue. */
const PAGES = {
  ...Object.fromEntries(Object.values(STATES).map(({ slug }) => [slug, ListPage])),
  ready: ReadyPage,
  quarantined: PayloadPage,
  messages: ListPage,
  overview: QueuePage,
  message: MessagePage,
  consumers: ConsumersPage,
  schedules: SchedulesPage,
  log: LogPage,
};

function App() {
  const route = useRoute();
  const session = useLoaded("api/session");
  const [question, setQuestion] = useState();
  const [notice, setNotice] = useState("");
  const shell = useMemo(
    () => ({ session: session.data, ask: setQuestion, say: setNotice }),
    [session.data],
  );

  useEffect(() => live.follow(route.queue), [route.queue]);
  useArrival(route, () => setNotice(""));

  return html`<${Shell} value=${shell}>
    <a class="skip" href="#main" onClick=${skip}>Skip to content</a>
    <${Bar} page=${route.page} />
    <main id="main" tabindex="-1">
      <p class=${notice === "" ? "notice unseen" : "notice"} role="status">${notice}</p>
      ${
        session.data === undefined
          ? html`<${StateLine} loaded=${session} />`
          : html`<div>
              ${
                session.data.readOnly &&
                html`<p class="read-only">
                  Read-only: this dashboard does not allow changes.
                </p>`
              }
              <${Page} route=${route} />
            </div>`
      }
    </main>
    <footer>
      ${session.data === undefined ? "" : `Delayline ${session.data.version}. `}Times are in this device's time zone. Ages and
      countdowns use the Redis server's clock.
    </footer>
    <${Dialog} question=${question} onClose=${() => setQuestion(undefined)} onDone=${setNotice} />
  <//>`;
}

function Page({ route }) {
  const View = VIEWS[route.page];
  if (View !== undefined) return html`<${View} params=${route.params} key=${route.page} />`;
  const Content = PAGES[route.page];
  if (Content === undefined) {
    return html`<div>
      <h1 tabindex="-1">Page not found</h1>
      <p><a href=${HOME}>All queues</a></p>
    </div>`;
  }
  return html`<${QueueFrame} name=${route.queue} page=${route.page} key=${route.queue}>
    <${Content} name=${route.queue} page=${route.page} params=${route.params} key=${route.page} />
  <//>`;
}

/** What the browser's tab says: the page, and of which queue. */
function titleOf({ page, queue, params: { q, key, id } }) {
  const { label } = Object.values(STATES).find(({ slug }) => slug === page) ?? {};
  const name =
    { find: `Find ${q ?? ""}`, message: key ?? id, missing: "Page not found" }[page] ??
    NAMED_VIEWS[page] ??
    label ??
    page.charAt(0).toUpperCase() + page.slice(1);
  const shown = page === "overview" ? [queue] : [name, queue];
  const parts = [...shown.filter((part) => part !== undefined), "Delayline"];
  return parts.map(visible).join(" · ");
}

/** Scrolls each new page to the top and focuses its heading, for keyboards and screen readers. */
function useArrival(route, onArrival) {
  const isFirst = useRef(true);
  const title = titleOf(route);
  useEffect(() => {
    document.title = title;
  }, [title]);
  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    onArrival();
    scrollTo(0, 0);
    document.querySelector("h1")?.focus({ preventScroll: true });
  }, [route.page, route.queue]);
}

// The link's own fragment would replace the route.
function skip(event) {
  event.preventDefault();
  document.querySelector("main").focus();
}

render(html`<${App} />`, document.querySelector("#app"));
