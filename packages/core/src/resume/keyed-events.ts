/** Events for durable machines sent again under the key of an earlier resume. */
import { StatewrightError } from "../base/errors.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import type { Delivery } from "../run/migration/program.ts";
import { getEventKey, parseMessage } from "../run/session/inbox/event-inbox.ts";
import type { PostedEvents } from "./open-or-deliver.ts";

/** What an earlier resume of the same key has done. */
export type KeyedEvents =
  /** The event waits in the inbox. */
  | { readonly posted: PostedEvents }
  /** The run has received the event or the answer. */
  | { readonly run: RunRow };

/** Finds the event or the answer of an earlier resume with this key. Throws `key_reused` for another event. */
export async function findKeyedEvents(delivery: Delivery, key: string): Promise<KeyedEvents | undefined> {
  const { store, codec, thread } = delivery;
  const branch = delivery.branch ?? (await store.thread(thread))?.headBranch;
  if (branch === undefined) return undefined;
  const row = await store.inboxMessage(thread, branch, key);
  const runs = await store.runs({ thread, branch });
  if (row?.kind === "event") {
    const message = parseMessage(codec, row.messages);
    checkSameEvent(delivery, key, message === undefined ? undefined : getEventKey({ message }));
    const run = runs.find(({ id }) => id === (row.deliveredTo ?? message?.run));
    const events = [{ id: row.id, key: getEventKey({ message }) }];
    if (run === undefined) return undefined;
    return row.deliveredTo === undefined ? { posted: { run, events } } : { run };
  }
  const answered = (await store.interrupts(thread, branch)).find(({ answerKey }) => answerKey === key);
  const run = runs.find(({ id, resumeKey }) => resumeKey === key || id === answered?.answeredRun);
  return run === undefined ? undefined : { run };
}

function checkSameEvent({ answers, thread }: Delivery, key: string, known: string | undefined): void {
  const names = Object.keys(answers);
  if (known === undefined || names.length === 0 || names.includes(known) || known === "in_doubt") return;
  throw new StatewrightError("key_reused", {
    what: `resume: expected the event "${known}" of the key "${key}", got ${names.map((name) => `"${name}"`).join(", ")}`,
    next: "Use another key for another event, or send the same event to repeat a call",
    place: { thread },
  });
}
