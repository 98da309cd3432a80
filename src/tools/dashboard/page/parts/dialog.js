// @ts-check
import { html, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/preact-htm.js";
import { Text } from "./text.js";
import { DurationField, joinDuration, splitDuration } from "./duration-field.js";

// Users confirm every change in this dialog. A question is
//   { title, about, text, verb, isDestructive, delay: { label, initial }, reason: { label }, check, act }
// `about`: what it concerns, as pairs of a label and an untrusted text.
// `check(tell, isOpen)` says in words what the change would do now. `act({ delay, reason }, tell)` makes the change and returns the
// result in words. If it fails, the dialog stays open and shows why. Both may `tell` how far they have come; checking may
// stop when `isOpen()` is false.

/** The dialog, open while there is a question. Calls `onDone(text)` with the result of the change. */
export function Dialog({ question, onClose, onDone }) {
  const dialog = useRef();
  useLayoutEffect(() => {
    if (question !== undefined && !dialog.current.open) dialog.current.showModal();
  }, [question]);
  const close = () => {
    dialog.current.close();
    onClose();
    // The button that opened the dialog may be gone, together with its row.
    setTimeout(() => {
      if (document.activeElement === document.body) document.querySelector("h1")?.focus();
    });
  };
  return html`<dialog
    ref=${dialog}
    aria-labelledby="dialog-title"
    aria-describedby="dialog-text"
    onCancel=${(event) => {
      event.preventDefault();
      close();
    }}
  >
    ${
      question !== undefined &&
      html`<${Question} key=${question} question=${question} onClose=${close} onDone=${onDone} />`
    }
  </dialog>`;
}

function Question({ question, onClose, onDone }) {
  const [delay, setDelay] = useState(() => splitDuration(question.delay?.initial ?? 0));
  const [reason, setReason] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState();
  const [outlook, setOutlook] = useState(question.check && "Looking…");
  const isOpen = useRef(true);
  /** Until the user has decided. */
  const isAsking = useRef(true);
  useEffect(() => () => void (isOpen.current = isAsking.current = false), []);
  useEffect(() => {
    const tell = (text) => isAsking.current && setOutlook(text);
    const failed = (error) => tell(`Could not look: ${error.message}.`);
    question.check?.(tell, () => isAsking.current).then(tell, failed);
  }, [question]);

  const submit = async (event) => {
    event.preventDefault();
    if (isBusy) return;
    isAsking.current = false;
    setBusy(true);
    setFailure(undefined);
    try {
      const result = await question.act(
        {
          delay: question.delay && joinDuration(delay),
          reason: question.reason && reason.trim(),
        },
        (text) => isOpen.current && setOutlook(text),
      );
      onDone(result);
      if (isOpen.current) onClose();
    } catch (error) {
      if (isOpen.current) setFailure(error.message);
      else onDone(`${question.title} Failed: ${error.message}.`);
    } finally {
      if (isOpen.current) setBusy(false);
    }
  };

  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">${question.title}</h2>
    <div id="dialog-text">
      ${
        question.about &&
        html`<dl class="pairs">
          ${question.about.map(
            ([label, value]) =>
              html`<div key=${label}>
                <dt>${label}</dt>
                <dd><${Text} of=${value} length=${200} /></dd>
              </div>`,
          )}
        </dl>`
      }
      <p>${question.text}</p>
    </div>
    ${outlook !== undefined && html`<p class="outlook" role="status">${outlook}</p>`}
    ${
      question.delay &&
      html`<${DurationField} label=${question.delay.label} value=${delay} onChange=${setDelay} />`
    }
    ${
      question.reason &&
      html`<label class="reason"
        ><span>${question.reason.label}</span>
        <input
          type="text"
          maxlength="500"
          value=${reason}
          onInput=${(event) => setReason(event.target.value)}
        />
      </label>`
    }
    ${failure !== undefined && html`<p class="failure" role="alert">Failed: ${failure}.</p>`}
    <div class="actions">
      <button type="button" onClick=${onClose}>${isBusy ? "Close" : "Go back"}</button>
      <button
        type="submit"
        class=${question.isDestructive ? "destructive" : "main"}
        aria-disabled=${isBusy}
      >
        ${isBusy ? "Working…" : question.verb}
      </button>
    </div>
  </form>`;
}
