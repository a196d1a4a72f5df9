/** Buffer between a run's handle and its inbox: messages sent before the run starts wait here. */
import { StatewrightError } from "../../../base/errors.ts";
import type { ConversationMessageKind } from "../../../checkpoint/inbox-message.ts";
import type { Message } from "../../../model/message.ts";
import type { Inbox } from "./inbox.ts";

/** Forwards messages from a handle to the inbox of its run. */
export interface InboxBuffer {
  /** Sends messages to the run; resolves when they are saved. */
  readonly send: (kind: ConversationMessageKind, messages: readonly Message[]) => Promise<void>;
  /** Opens the buffer when the run has started, and forwards the buffered messages. */
  readonly open: (inbox: Pick<Inbox, "add">) => void;
  /** Closes the buffer when the run has finished in this process; `failure` is the rejection of the run. */
  readonly end: (failure?: { readonly error: unknown }) => void;
}

interface BufferedMessage {
  readonly kind: ConversationMessageKind;
  readonly messages: readonly Message[];
  readonly resolve: (delivery: Promise<void>) => void;
  readonly reject: (reason: unknown) => void;
}

/** Creates an empty buffer. `hasStore`: the run has a store, whose inbox outlives the run. */
export function createInboxBuffer(thread: string, { hasStore }: { readonly hasStore: boolean }): InboxBuffer {
  let buffered: readonly BufferedMessage[] = [];
  let inbox: Pick<Inbox, "add"> | undefined;
  // Created lazily: an error with a stack for every finished run took a tenth of the time of a small run.
  let createClosedError: (() => unknown) | undefined;
  return {
    send: (kind, messages) => {
      if (createClosedError !== undefined) return Promise.reject(createClosedError());
      if (inbox !== undefined) return inbox.add(kind, messages);
      return new Promise((resolve, reject) => {
        buffered = [...buffered, { kind, messages, resolve, reject }];
      });
    },
    open: (opened) => {
      inbox = opened;
      for (const { kind, messages, resolve } of buffered) resolve(opened.add(kind, messages));
      buffered = [];
    },
    end: (failure) => {
      if (createClosedError !== undefined || (hasStore && inbox !== undefined)) return;
      createClosedError =
        inbox === undefined ? () => failure?.error ?? createQueuedError(thread) : () => createFinishedError(thread);
      for (const { reject } of buffered) reject(createClosedError());
      buffered = [];
    },
  };
}

function createFinishedError(thread: string): StatewrightError {
  return new StatewrightError("missing_store", {
    what: "a message was sent to a finished run without a store, so no later run can receive it",
    next: "Start a run with the message as its input, or pass a store to the runs",
    place: { thread },
  });
}

function createQueuedError(thread: string): StatewrightError {
  return new StatewrightError("thread_busy", {
    what: `a message was sent to a run of the thread "${thread}" that is queued behind another run`,
    next: "Send it after the run has started, or use steer(graph, { store, thread, input }) to reach the active run",
    place: { thread },
  });
}
