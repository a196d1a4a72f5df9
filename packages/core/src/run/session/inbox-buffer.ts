/** The mailbox of a run's handle: what is sent through it before the run has begun waits here for its inbox. */
import { StatewrightError } from "../../base/errors.ts";
import type { LetterKind } from "../../checkpoint/inbox-message.ts";
import type { Message } from "../../model/message.ts";
import type { Inbox } from "./inbox.ts";

/** Between a handle and the inbox of its run. */
export interface Mailbox {
  /** Send messages to the run; kept when the promise resolves. */
  readonly send: (kind: LetterKind, messages: readonly Message[]) => Promise<void>;
  /** The run has begun. */
  readonly open: (inbox: Pick<Inbox, "put">) => void;
  /** The run is over for this process; `failure` is what it rejects with. */
  readonly end: (failure?: { readonly error: unknown }) => void;
}

interface Early {
  readonly kind: LetterKind;
  readonly messages: readonly Message[];
  readonly resolve: (kept: Promise<void>) => void;
  readonly reject: (why: unknown) => void;
}

/** An empty mailbox. `keeps`: the run has a store, whose inbox outlives it. */
export function createMailbox(thread: string, keeps: boolean): Mailbox {
  let early: readonly Early[] = [];
  let inbox: Pick<Inbox, "put"> | undefined;
  // Made when somebody is told: an error with its stack for every run that ends took a tenth of the time of a small one.
  let closed: (() => unknown) | undefined;
  return {
    send: (kind, messages) => {
      if (closed !== undefined) return Promise.reject(closed());
      if (inbox !== undefined) return inbox.put(kind, messages);
      return new Promise((resolve, reject) => {
        early = [...early, { kind, messages, resolve, reject }];
      });
    },
    open: (opened) => {
      inbox = opened;
      for (const { kind, messages, resolve } of early) resolve(opened.put(kind, messages));
      early = [];
    },
    end: (failure) => {
      if (closed !== undefined || (keeps && inbox !== undefined)) return;
      closed = inbox === undefined ? () => failure?.error ?? hasNotBegun(thread) : () => isOver(thread);
      for (const { reject } of early) reject(closed());
      early = [];
    },
  };
}

function isOver(thread: string): StatewrightError {
  return new StatewrightError("missing_store", {
    what: "a message was sent to a run that is over, and no store keeps it for the next one",
    next: "Start a run with the message as its input, or give runs a store",
    place: { thread },
  });
}

function hasNotBegun(thread: string): StatewrightError {
  return new StatewrightError("thread_busy", {
    what: `a message was sent to a run of the thread "${thread}" that stands in its queue, behind another`,
    next: "Send it when the run has begun; steer(graph, { store, thread, input }) reaches the run that is at work",
    place: { thread },
  });
}
