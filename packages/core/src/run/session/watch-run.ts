/** Watch of a run at work: reacts to messages, requests and pre-empting inputs of other processes. */
import { toErrorRecord } from "../../base/errors.ts";
import { checkPreemption } from "./check-preemption.ts";
import { checkRequests } from "./check-requests.ts";
import type { Inbox } from "./inbox/inbox.ts";
import type { Persistence } from "./parts/persistence.ts";
import type { Session } from "./session.ts";
import type { WatchedThread } from "./thread-watch.ts";

/** Creates the watch of a run. */
export function createWatch({ inboxes }: Pick<Session, "inboxes">, { thread, store }: Persistence): WatchedThread {
  const { inbox, events } = inboxes;
  return {
    thread: thread.run.thread,
    world: thread.world,
    onHint: () => {
      thread.arrivals.version += 1;
    },
    onInputs: ({ queued, messages, requests }) => {
      if (queued > 0) void checkPreemption(thread, store);
      if (requests > 0) void checkRequests(thread, store);
      // Senders of this process have notified the run.
      if (messages === 0 || store.local === true) return;
      thread.arrivals.version += 1;
      events.notifyArrival();
      void notifySteering(thread, inbox);
    },
  };
}

/** Reads the inbox, and ends waits of tools for a steering message. Never rejects. */
async function notifySteering({ run, world }: Persistence["thread"], inbox: Inbox): Promise<void> {
  if (!inbox.mayHaveMessages()) return;
  try {
    const steering = (await inbox.listMessages()).filter(({ kind }) => kind === "steer");
    if (steering.length > 0) inbox.notifyArrival(steering.map(({ id }) => id));
  } catch (error) {
    const fields = { thread: run.thread, error: toErrorRecord(error) };
    world.log("warn", "inbox messages could not be read", fields);
  }
}
