/**
 * The event stream of a run: what happened, as it happens. Events about saved facts carry the fact's sequence number and
 * come after it is durable; all others are transient and carry the number that they follow.
 */

import type { EffectClass, EffectKind } from "../base/effect.ts";
import type { ErrorRecord } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import type { AssistantMessage } from "../model/message.ts";
import type { Delta } from "../state/delta.ts";
import type { ToolOutput, ToolResult } from "../tool/result.ts";
import type { Inspection } from "./inspection.ts";
import type { GuardResult, Step } from "./kernel.ts";

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
}

/** What every event carries: the run's sequence number and the time in milliseconds since the epoch. */
export interface EventPlace {
  readonly seq: number;
  readonly at: number;
  /** On events of an inner graph: the nodes that lead to it, as `research` or `outer.research`. */
  readonly within?: string;
}

interface InTask {
  readonly node: string;
  readonly task: string;
}

interface InCall extends InTask {
  readonly callId: string;
  readonly tool: string;
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
    }
  | { readonly type: "run.waiting"; readonly interrupts: readonly OpenInterrupt[] }
  | { readonly type: "run.completed"; readonly steps: number }
  | { readonly type: "run.failed"; readonly error: ErrorRecord }
  | { readonly type: "run.cancelled"; readonly reason: string }
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
  | ({ readonly type: "tool.args_rewritten"; readonly by: string; readonly args: unknown } & InCall)
  | ({ readonly type: "tool.forged_arg_stripped"; readonly keys: readonly string[] } & InCall)
  | ({ readonly type: "tool.rejected"; readonly reason: string } & InCall)
  | ({ readonly type: "tool.update"; readonly partial: ToolOutput } & InCall)
  | ({ readonly type: "tool.progress"; readonly text: string } & InCall)
  | ({
      readonly type: "tool.retried";
      readonly attempt: number;
      readonly delayMs: number;
      readonly error: string;
    } & InCall)
  | ({ readonly type: "tool.completed"; readonly result: ToolResult } & InCall)
  | ({ readonly type: "tool.failed"; readonly result: ToolResult } & InCall)
  | ({ readonly type: "model.started"; readonly model: string; readonly messages: number } & InTask)
  | ({ readonly type: "message.delta"; readonly kind: "text" | "reasoning"; readonly text: string } & InTask)
  | ({
      readonly type: "message.call_delta";
      readonly callId: string;
      readonly tool: string;
      readonly argsText: string;
    } & InTask)
  | ({ readonly type: "message.completed"; readonly message: AssistantMessage } & InTask)
  | ({ readonly type: "node.progress"; readonly text: string } & InTask)
  | ({ readonly type: "custom"; readonly name: string; readonly payload: Json } & InTask);

/** One event of a run. */
export type RunEvent = EventPlace & RunEventBody;

/** Where the engine puts events and readers take them. With nobody listening an event costs one comparison. */
export interface EventStream {
  /** Whether building an event is worth it. */
  readonly listening: () => boolean;
  readonly emit: (event: RunEvent) => void;
  readonly subscribe: (reader: (event: RunEvent) => void) => () => void;
  /** Every event from now on, until the run has ended or the loop is left. */
  readonly iterate: () => AsyncIterableIterator<RunEvent>;
  readonly close: () => void;
  /** Tells the machines' ways to an inspector, if there is one. */
  readonly inspection: Inspection | undefined;
}

/** A stream without readers. A reader that throws does not harm the run: its error goes to `onReaderError`. */
export function createEventStream(onReaderError: (error: unknown) => void, inspection?: Inspection): EventStream {
  const readers = new Set<(event: RunEvent) => void>();
  const closers = new Set<() => void>();
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
          reader(event);
        } catch (error) {
          onReaderError(error);
        }
      }
    },
    subscribe,
    iterate: () => iterate(subscribe, closers, () => closed),
    inspection,
    close: () => {
      closed = true;
      for (const close of closers) close();
      closers.clear();
      // A body that was given up may still speak: nothing comes after the event that ends the run.
      readers.clear();
    },
  };
}

function iterate(
  subscribe: EventStream["subscribe"],
  closers: Set<() => void>,
  isClosed: () => boolean,
): AsyncIterableIterator<RunEvent> {
  const waiting: RunEvent[] = [];
  let sleeping: (() => void)[] = [];
  let ended = isClosed();
  const wake = (): void => {
    const woken = sleeping;
    sleeping = [];
    for (const each of woken) each();
  };
  const unsubscribe = subscribe((event) => {
    if (!coalesced(waiting, event)) waiting.push(event);
    wake();
  });
  const end = (): void => {
    ended = true;
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
        if (ended) return { done: true, value: undefined };
        await new Promise<void>((resolve) => {
          sleeping.push(resolve);
        });
      }
    },
    return: async () => {
      waiting.length = 0;
      end();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => iterator,
  };
  return iterator;
}

/** How many events may wait for a slow reader before deltas of one message are joined. */
const joinedAbove = 1_000;

/** Join a delta to the one before it when the reader is behind, so that a slow reader costs bounded memory (rule E59). */
function coalesced(waiting: RunEvent[], event: RunEvent): boolean {
  if (waiting.length < joinedAbove || event.type !== "message.delta") return false;
  const before = waiting[waiting.length - 1];
  if (before?.type !== "message.delta" || before.task !== event.task || before.kind !== event.kind) return false;
  waiting[waiting.length - 1] = { ...event, text: before.text + event.text };
  return true;
}
