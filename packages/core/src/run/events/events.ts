/**
 * The event stream of a run: what happened, as it happens. Events about saved facts carry the fact's sequence number and
 * come after it is durable; all others are transient and carry the number that they follow.
 */

import type { EffectClass, EffectKind } from "../../base/effect.ts";
import type { ErrorRecord } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { LetterKind } from "../../checkpoint/inbox-message.ts";
import type { LostAttempt } from "../../model/failed-attempt.ts";
import type { AssistantMessage, Message, Usage } from "../../model/message.ts";
import type { ModelFailureKind } from "../../model/model-failure.ts";
import type { Delta } from "../../state/delta.ts";
import type { ToolOutput, ToolResult } from "../../tool/result.ts";
import type { GuardResult, Step } from "../kernel/kernel.ts";
import type { RunHandle } from "../session/options.ts";
import { createEventQueue, isDurable } from "./event-queue.ts";
import type { Inspection } from "./inspection.ts";

/** What a machine did: with the number and the time of its event, what tests, the command line and the inspector read. */
export interface Transition {
  /** Leads from the graph to the machine that moved: a graph's name, then the nodes of subgraphs. */
  readonly path: readonly string[];
  readonly event: string;
  readonly from: Json;
  readonly to: Json;
  /** The guards that were asked, in their order. */
  readonly guards: readonly GuardResult[];
  /** Ids of the actors that the transition starts. */
  readonly effects: readonly string[];
  /** What the checkpoint of this transition holds, by channel; empty where it makes none. */
  readonly changes: Readonly<Record<string, Delta>>;
  /** Bytes of that checkpoint's deltas. */
  readonly bytes: number;
  /** Milliseconds of the superstep, or of the turn, that ends with that checkpoint; 0 where there is none. */
  readonly durationMs: number;
}

/** A transition as it stands on the event stream. */
export interface TransitionRecord extends EventPlace, Transition {
  readonly type: "transition.taken";
  readonly path: readonly string[];
}

/** Of a transition that makes no checkpoint. */
export const nothingSaved: Pick<Transition, "changes" | "bytes" | "durationMs"> = Object.freeze({
  changes: Object.freeze({}),
  bytes: 0,
  durationMs: 0,
});

/** What a transition record says of a kernel's step. */
export function reached([to, effects, { guards }]: Step): Pick<Transition, "to" | "guards" | "effects"> {
  return { to: to.value, guards, effects: effects.flatMap((effect) => (effect.kind === "start" ? [effect.id] : [])) };
}

/** A question to a person, as the caller sees it. */
export interface OpenInterrupt {
  readonly id: string;
  readonly key: string;
  readonly node: string;
  readonly payload: unknown;
  /** JSON Schema of the answer, when its schema has one. */
  readonly schema: Json | undefined;
  /** When it stops waiting, in milliseconds since the epoch; absent when it waits for ever. */
  readonly expiresAt?: number | undefined;
}

/** What every event carries: the run's sequence number and the time in milliseconds since the epoch. */
export interface EventPlace {
  readonly seq: number;
  readonly at: number;
  /** On events of an inner graph: the nodes and tools that lead to it, as `research` or `outer.research`. */
  readonly within?: string;
  /** Beside it: the same for all events of one call, and another for each of several calls of one node or tool. */
  readonly withinId?: string;
}

interface InTask {
  readonly node: string;
  readonly task: string;
}

interface InMessage extends InTask {
  /** The id of the message that is being written. */
  readonly messageId: string;
}

interface InCall extends InTask {
  readonly callId: string;
  /** Its canonical name; what the model called, where there is no such tool. */
  readonly tool: string;
  /** The tool's name for people. */
  readonly label?: string | undefined;
}

/** What an event says, by `type`. */
export type RunEventBody =
  | {
      readonly type: "run.started";
      readonly run: string;
      readonly thread: string;
      readonly branch: string;
      readonly graph: string;
      readonly attempt: number;
      readonly recovered: boolean;
      /** What wrote the checkpoint that it goes on from, where that was another version of the graph, or another shape. */
      readonly writtenBy?: { readonly version: number; readonly shape: string };
    }
  /** The input stands behind another run of the thread. */
  | { readonly type: "run.queued"; readonly run: string; readonly thread: string; readonly branch: string }
  /** Messages that were sent to the run are in its state now: `steer` at a boundary, `followUp` where it would have ended. */
  | {
      readonly type: "inbox.taken";
      readonly letter: string;
      readonly kind: LetterKind;
      readonly messages: readonly Message[];
    }
  /** The run could not see, or not take in, what was sent to it; what waits goes on waiting. */
  | { readonly type: "inbox.failed"; readonly error: ErrorRecord }
  | { readonly type: "run.waiting"; readonly interrupts: readonly OpenInterrupt[] }
  | { readonly type: "run.completed"; readonly steps: number }
  | { readonly type: "run.failed"; readonly error: ErrorRecord }
  /** `run` where it is another than the one that is read: a run that stood still, which this one's input has ended. */
  | { readonly type: "run.cancelled"; readonly reason: string; readonly run?: string }
  | { readonly type: "run.paused"; readonly cause: ErrorRecord }
  | ({ readonly type: "transition.taken" } & Transition)
  | {
      readonly type: "step.committed";
      readonly step: number;
      readonly checkpoint: number | undefined;
      readonly nodes: readonly string[];
      readonly next: readonly string[];
      readonly changes: Readonly<Record<string, Delta>>;
      readonly bytes: number;
      readonly durationMs: number;
    }
  | ({ readonly type: "task.started"; readonly attempt: number; readonly input?: unknown } & InTask)
  | ({ readonly type: "task.completed"; readonly durationMs: number; readonly reused: boolean } & InTask)
  | ({
      readonly type: "task.retried";
      readonly attempt: number;
      readonly delayMs: number;
      readonly error: ErrorRecord;
    } & InTask)
  | ({ readonly type: "task.failed"; readonly error: ErrorRecord } & InTask)
  /** The last failure of a task was given to its node's error handler. */
  | ({ readonly type: "task.handled"; readonly attempt: number; readonly error: ErrorRecord } & InTask)
  | ({ readonly type: "task.interrupted"; readonly keys: readonly string[] } & InTask)
  | ({
      readonly type: "effect.reused";
      readonly key: string;
      readonly kind: EffectKind;
      readonly name: string;
      readonly attempts: number;
    } & InTask)
  | ({
      readonly type: "effect.repeated";
      readonly key: string;
      readonly kind: EffectKind;
      readonly name: string;
      readonly effect: EffectClass;
      readonly idempotencyKey: string;
    } & InTask)
  | ({ readonly type: "tool.started"; readonly args: unknown } & InCall)
  | ({
      readonly type: "tool.args_rewritten";
      readonly by: string;
      readonly args: unknown;
      readonly raw?: unknown;
    } & InCall)
  | ({ readonly type: "tool.forged_arg_stripped"; readonly keys: readonly string[] } & InCall)
  | ({ readonly type: "tool.rejected"; readonly reason: string } & InCall)
  /** Middleware, or the person whom it asked, refused a call that fits its tool. */
  | ({ readonly type: "tool.denied"; readonly by: string; readonly reason: string } & InCall)
  /** `dropped`, here and in progress: how many before it this reader was too slow for. */
  | ({ readonly type: "tool.update"; readonly partial: ToolOutput; readonly dropped?: number } & InCall)
  | ({ readonly type: "tool.progress"; readonly text: string; readonly dropped?: number } & InCall)
  | ({
      readonly type: "tool.retried";
      readonly attempt: number;
      readonly delayMs: number;
      readonly error: string;
    } & InCall)
  /** A store of artifacts failed on one: the model sees what is left of it in its result. */
  | ({
      readonly type: "tool.artifact_lost";
      readonly key: string;
      readonly name: string;
      readonly error: string;
    } & InCall)
  | ({ readonly type: "tool.completed"; readonly result: ToolResult } & InCall)
  | ({ readonly type: "tool.failed"; readonly result: ToolResult } & InCall)
  | ({ readonly type: "model.started"; readonly model: string; readonly messages: number } & InTask)
  /** The provider did not heed a part of the request, such as a setting that it does not have. Told once in a run. */
  | ({ readonly type: "model.warned"; readonly model: string; readonly warning: string } & InTask)
  /** A request to a model failed; the same model, or the one that stands in for it, is asked after the delay. */
  | ({
      readonly type: "model.retried";
      readonly messageId: string;
      /** How many requests the call has made by now. */
      readonly attempt: number;
      readonly delayMs: number;
      /** The model that failed, and the one that is asked next. */
      readonly model: string;
      readonly next: string;
      readonly kind: ModelFailureKind;
      readonly error: ErrorRecord;
      /** What the failed request is known to have cost; absent is unknown. */
      readonly usage?: Usage;
    } & InTask)
  /** A hook had another model asked; its answer is no message of the conversation. */
  | ({
      readonly type: "model.asked_beside";
      /** The middleware, and the key under which it asked. */
      readonly by: string;
      readonly key: string;
      readonly model: string;
      readonly usage?: Usage;
    } & InTask)
  | ({ readonly type: "message.delta"; readonly kind: "text" | "reasoning"; readonly text: string } & InMessage)
  | ({
      readonly type: "message.call_delta";
      readonly callId: string;
      readonly tool: string;
      readonly argsText: string;
    } & InMessage)
  /** What was streamed of this message so far is no part of it: take it back. Another answer follows, or none. */
  | ({
      readonly type: "message.voided";
      readonly model: string;
      readonly kind: LostAttempt["kind"];
      /** The text that is void; absent where another process streamed it. */
      readonly text?: string;
    } & InMessage)
  | ({ readonly type: "message.completed"; readonly message: AssistantMessage } & InTask)
  | ({ readonly type: "node.progress"; readonly text: string; readonly dropped?: number } & InTask)
  | ({ readonly type: "custom"; readonly name: string; readonly payload: Json } & InTask)
  /** This reader was so slow that so many events in passing were dropped for it here; none that is durable. */
  | { readonly type: "events.dropped"; readonly count: number };

/** One event of a run. */
export type RunEvent = EventPlace & RunEventBody;

/** A part of the stream: supersteps with what they changed, messages as they are written, your own events, tasks, tools, or all. */
export type EventView = "updates" | "checkpoints" | "messages" | "custom" | "tasks" | "tools" | "debug";

const views: Readonly<Record<EventView, (event: RunEvent) => boolean>> = {
  updates: ({ type }) => type === "step.committed",
  checkpoints: (event) => isDurable(event),
  messages: ({ type }) => type.startsWith("message.") || type.startsWith("inbox."),
  custom: ({ type }) => type === "custom" || type === "node.progress",
  tasks: ({ type }) => type.startsWith("task.") || type.startsWith("effect."),
  tools: ({ type }) => type.startsWith("tool."),
  debug: () => true,
};

/** Tell whether an event belongs to one of the views; without any, all do. What was dropped is told in every view. */
export function isInView(event: RunEvent, wanted: readonly EventView[] | undefined): boolean {
  return wanted === undefined || event.type === "events.dropped" || wanted.some((view) => views[view](event));
}

/** Where the engine puts events and readers take them. With nobody listening an event costs one comparison. */
export interface EventStream {
  /** Whether building an event is worth it. */
  readonly listening: () => boolean;
  readonly emit: (event: RunEvent) => void;
  readonly subscribe: (reader: (event: RunEvent) => void) => () => void;
  /** Every event from now on, until the run has ended or the loop is left; with `wanted` only those. */
  readonly iterate: (wanted?: (event: RunEvent) => boolean) => AsyncIterableIterator<RunEvent>;
  /** The state of the run as its result would show it, once it has one. */
  state: (() => unknown) | undefined;
  /** The handle of the run that tells its events here. */
  handle: RunHandle<unknown> | undefined;
  /** The end; loops that were not told of the failure throw it. */
  readonly close: (failure?: { readonly error: unknown }) => void;
  /** Tells the machines' ways to an inspector, if there is one. */
  readonly inspection: Inspection | undefined;
}

/** A stream without readers. A reader that throws does not harm the run: its error goes to `onReaderError`. */
export function createEventStream(onReaderError: (error: unknown) => void, inspection?: Inspection): EventStream {
  const readers = new Set<(event: RunEvent) => void>();
  const closers = new Set<Close>();
  let closed = false;

  function subscribe(reader: (event: RunEvent) => void): () => void {
    readers.add(reader);
    return () => {
      readers.delete(reader);
    };
  }

  return {
    listening: () => readers.size > 0,
    emit: (event) => {
      for (const reader of readers) {
        try {
          const told: unknown = reader(event);
          // An asynchronous reader fails later: nobody awaits it.
          if (told instanceof Promise) told.catch(onReaderError);
        } catch (error) {
          onReaderError(error);
        }
      }
    },
    subscribe,
    iterate: (wanted) => iterate(subscribe, closers, () => closed, wanted),
    state: undefined,
    handle: undefined,
    inspection,
    close: (failure) => {
      closed = true;
      for (const close of closers) close(failure);
      closers.clear();
      // A body that was given up may still speak: nothing comes after the event that ends the run.
      readers.clear();
    },
  };
}

type Close = EventStream["close"];

function iterate(
  subscribe: EventStream["subscribe"],
  closers: Set<Close>,
  isClosed: () => boolean,
  wanted: (event: RunEvent) => boolean = everything,
): AsyncIterableIterator<RunEvent> {
  const waiting = createEventQueue();
  let sleeping: (() => void)[] = [];
  let ended = isClosed();
  const wake = (): void => {
    const woken = sleeping;
    sleeping = [];
    for (const each of woken) each();
  };
  let isTold = false;
  let untold: { readonly error: unknown } | undefined;
  const unsubscribe = subscribe((event) => {
    if (event.type === "run.failed") isTold = true;
    if (!wanted(event)) return;
    waiting.push(event);
    wake();
  });
  const end: Close = (failure) => {
    ended = true;
    if (!isTold) untold = failure;
    unsubscribe();
    closers.delete(end);
    wake();
  };
  closers.add(end);
  const iterator: AsyncIterableIterator<RunEvent> = {
    next: async () => {
      for (;;) {
        const event = waiting.shift();
        if (event !== undefined) return { done: false, value: event };
        if (untold !== undefined) {
          const { error } = untold;
          untold = undefined;
          throw error;
        }
        if (ended) return { done: true, value: undefined };
        await new Promise<void>((resolve) => {
          sleeping.push(resolve);
        });
      }
    },
    return: async () => {
      waiting.clear();
      untold = undefined;
      end();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => iterator,
  };
  return iterator;
}

function everything(): boolean {
  return true;
}
