/** Events of a run: what each type of event holds. */
import type { EffectClass, EffectKind } from "../../base/effect.ts";
import type { ErrorRecord } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { CheckpointSource } from "../../checkpoint/checkpoint.ts";
import type { ConversationMessageKind } from "../../checkpoint/inbox-message.ts";
import type { AssistantMessage, FailedAttempt, Message, Usage } from "../../model/message.ts";
import type { ModelFailureKind } from "../../model/model-failure.ts";
import type { Delta } from "../../state/delta.ts";
import type { ToolOutput, ToolResult } from "../../tool/result.ts";
import type { GuardResult } from "../kernel/kernel.ts";
import type { OpenWork } from "./open-message.ts";

/** A transition of a machine, as tests, the command line and the inspector read it. */
export interface Transition {
  /** Path from the graph to the machine: the graph name, then the nodes of subgraphs. */
  readonly path: readonly string[];
  readonly event: string;
  readonly from: Json;
  readonly to: Json;
  /** Evaluated guards, in order. */
  readonly guards: readonly GuardResult[];
  /** Ids of the actors that the transition starts. */
  readonly effects: readonly string[];
  /** Deltas of the checkpoint of this transition, by channel; empty without a checkpoint. */
  readonly changes: Readonly<Record<string, Delta>>;
  /** Bytes of that checkpoint's deltas. */
  readonly bytes: number;
  /** Duration in milliseconds of the superstep or turn that ends with the checkpoint; 0 without a checkpoint. */
  readonly durationMs: number;
}

/** A transition on the event stream. */
export interface TransitionRecord extends EventPosition, Transition {
  readonly type: "transition.taken";
  readonly path: readonly string[];
}

/** An open interrupt, as the caller of a run sees it. */
export interface OpenInterrupt<Key extends string = string, Payload = unknown> {
  readonly id: string;
  readonly key: Key;
  readonly node: string;
  readonly payload: Payload;
  /** JSON Schema of the answer; undefined when the answer schema has none. */
  readonly schema: Json | undefined;
  /** Expiry time in milliseconds since the epoch; absent for an interrupt without expiry. */
  readonly expiresAt?: number | undefined;
}

/** Fields of every event: its sequence number in the thread, its time and its branch. */
export interface EventPosition {
  readonly seq: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Branch of the run, also on events of nested graphs. */
  readonly branch: string;
  /** On events of a nested graph: the path of nodes and tools, e.g. `research` or `outer.research`. */
  readonly within?: string;
  /** With `within`: an id shared by all events of a call, distinct for each call of the same node or tool. */
  readonly withinId?: string;
}

interface TaskFields {
  readonly node: string;
  readonly task: string;
}

interface MessageFields extends TaskFields {
  /** Id of the message being streamed. */
  readonly messageId: string;
}

interface CallFields extends TaskFields {
  readonly callId: string;
  /** Canonical tool name; for an unknown tool, the name in the model's call. */
  readonly tool: string;
  /** Display name of the tool. */
  readonly label?: string | undefined;
}

/** Payload of an event, by `type`. */
export type RunEventBody =
  | {
      readonly type: "run.started";
      readonly run: string;
      readonly thread: string;
      readonly branch: string;
      readonly graph: string;
      readonly attempt: number;
      readonly recovered: boolean;
      /**
       * Writer of the checkpoint that the run continues from, when that writer was another version or shape of the
       * graph.
       */
      readonly writtenBy?: { readonly version: number; readonly shape: string };
    }
  /** The input is queued behind another run of the thread. */
  | { readonly type: "run.queued"; readonly run: string; readonly thread: string; readonly branch: string }
  /**
   * Inbox messages were delivered to the state of the run: `steer` at a superstep boundary, `followUp` at the end of
   * the run.
   */
  | {
      readonly type: "inbox.delivered";
      readonly inboxMessageId: string;
      readonly kind: ConversationMessageKind;
      readonly messages: readonly Message[];
    }
  /**
   * The inbox could not be read, or its messages could not be applied. Queued messages stay in the inbox, except a
   * message that no run can read.
   */
  | { readonly type: "inbox.failed"; readonly error: ErrorRecord }
  /**
   * A durable machine processed an event, or an answer about a promise in doubt (`key` is `in_doubt`). Saved with the
   * checkpoint of the transition.
   */
  | { readonly type: "event.received"; readonly inboxMessageId: string; readonly key: string; readonly by?: string }
  /** A durable machine did not accept a queued event when its turn came. The event is removed from the inbox. */
  | {
      readonly type: "event.refused";
      readonly inboxMessageId: string;
      readonly key: string;
      readonly by?: string;
      readonly error: ErrorRecord;
    }
  | { readonly type: "run.waiting"; readonly interrupts: readonly OpenInterrupt[] }
  | { readonly type: "run.completed"; readonly steps: number }
  | { readonly type: "run.failed"; readonly error: ErrorRecord }
  /** `run` is set when the event is about another run: a suspended run that the input of the current run has ended. */
  | { readonly type: "run.cancelled"; readonly reason: string; readonly run?: string }
  | { readonly type: "run.paused"; readonly cause: ErrorRecord }
  | ({ readonly type: "transition.taken" } & Transition)
  | {
      readonly type: "step.committed";
      readonly step: number;
      /** Undefined without a store, like `parent`. */
      readonly checkpoint: number | undefined;
      /** Checkpoint before this one; undefined for the first checkpoint of a graph. */
      readonly parent: number | undefined;
      readonly source: CheckpointSource;
      /** Run that wrote the checkpoint; for a fork, the run whose checkpoint was forked. */
      readonly run: string;
      readonly nodes: readonly string[];
      readonly next: readonly string[];
      readonly changes: Readonly<Record<string, Delta>>;
      readonly bytes: number;
      readonly durationMs: number;
    }
  | ({ readonly type: "task.started"; readonly attempt: number; readonly input?: unknown } & TaskFields)
  | ({ readonly type: "task.completed"; readonly durationMs: number; readonly reused: boolean } & TaskFields)
  | ({
      readonly type: "task.retried";
      readonly attempt: number;
      readonly delayMs: number;
      readonly error: ErrorRecord;
    } & TaskFields)
  | ({ readonly type: "task.failed"; readonly error: ErrorRecord } & TaskFields)
  /** The last failure of a task was passed to the error handler of its node. */
  | ({ readonly type: "task.handled"; readonly attempt: number; readonly error: ErrorRecord } & TaskFields)
  | ({ readonly type: "task.interrupted"; readonly keys: readonly string[] } & TaskFields)
  | ({
      readonly type: "effect.reused";
      readonly key: string;
      readonly kind: EffectKind;
      readonly name: string;
      readonly attempts: number;
    } & TaskFields)
  | ({
      readonly type: "effect.repeated";
      readonly key: string;
      readonly kind: EffectKind;
      readonly name: string;
      readonly effect: EffectClass;
      readonly idempotencyKey: string;
    } & TaskFields)
  /** A call passed its checks; approval may follow. Emitted again when a resume continues the call. */
  | ({ readonly type: "tool.started"; readonly args: unknown } & CallFields)
  /**
   * The body of the tool is called now, with these arguments: after approval and `beforeTool` hooks, once before the
   * attempts of the call, and again when a resume repeats the call. Never for a refused, denied or reused call.
   */
  | ({ readonly type: "tool.body_started"; readonly args: unknown } & CallFields)
  | ({
      readonly type: "tool.args_rewritten";
      readonly by: string;
      readonly args: unknown;
      readonly raw?: unknown;
    } & CallFields)
  | ({ readonly type: "tool.forged_arg_stripped"; readonly keys: readonly string[] } & CallFields)
  | ({ readonly type: "tool.rejected"; readonly reason: string } & CallFields)
  /** Middleware, or a person asked by middleware, denied a call with valid arguments. */
  | ({ readonly type: "tool.denied"; readonly by: string; readonly reason: string } & CallFields)
  /** `dropped`, here and in progress events: number of earlier updates dropped because the reader was too slow. */
  | ({ readonly type: "tool.update"; readonly partial: ToolOutput; readonly dropped?: number } & CallFields)
  /**
   * An update or a line of progress could not be read, filtered or redacted, and is not shown. `count`: number of such
   * updates of the call so far.
   */
  | ({ readonly type: "tool.update_withheld"; readonly count: number } & CallFields)
  | ({ readonly type: "tool.progress"; readonly text: string; readonly dropped?: number } & CallFields)
  | ({
      readonly type: "tool.retried";
      readonly attempt: number;
      readonly delayMs: number;
      readonly error: string;
    } & CallFields)
  /** The artifact store failed to save an artifact. The tool result contains a truncated version for the model. */
  | ({
      readonly type: "tool.artifact_lost";
      readonly key: string;
      readonly name: string;
      readonly error: string;
    } & CallFields)
  | ({ readonly type: "tool.completed"; readonly result: ToolResult } & CallFields)
  | ({ readonly type: "tool.failed"; readonly result: ToolResult } & CallFields)
  | ({ readonly type: "model.started"; readonly model: string; readonly messages: number } & TaskFields)
  /** The provider ignored a part of the request, e.g. an unsupported setting. Emitted once per run. */
  | ({ readonly type: "model.warned"; readonly model: string; readonly warning: string } & TaskFields)
  /** A model request failed. The same model or its fallback is called after the delay. */
  | ({
      readonly type: "model.retried";
      readonly messageId: string;
      /** Number of requests of the call so far. */
      readonly attempt: number;
      readonly delayMs: number;
      /** The failed model and the next model. */
      readonly model: string;
      readonly next: string;
      readonly kind: ModelFailureKind;
      readonly error: ErrorRecord;
      /** Known usage of the failed request; absent when unknown. */
      readonly usage?: Usage;
    } & TaskFields)
  /** A hook called an auxiliary model. The reply is not part of the conversation. */
  | ({
      readonly type: "model.auxiliary_called";
      /** Name of the middleware, and the key of the auxiliary model call. */
      readonly by: string;
      readonly key: string;
      readonly model: string;
      readonly usage?: Usage;
    } & TaskFields)
  | ({ readonly type: "message.delta"; readonly kind: "text" | "reasoning"; readonly text: string } & MessageFields)
  | ({
      readonly type: "message.call_delta";
      readonly callId: string;
      readonly tool: string;
      readonly argsText: string;
    } & MessageFields)
  /** The text streamed so far is not part of the message: discard the text. Another reply may follow. */
  | ({
      readonly type: "message.retracted";
      readonly model: string;
      readonly kind: FailedAttempt["kind"];
      /** The retracted text; absent when another process streamed the text. */
      readonly text?: string;
    } & MessageFields)
  | ({ readonly type: "message.completed"; readonly message: AssistantMessage } & TaskFields)
  | ({ readonly type: "node.progress"; readonly text: string; readonly dropped?: number } & TaskFields)
  | ({ readonly type: "custom"; readonly name: string; readonly payload: Json } & TaskFields)
  /**
   * Number of transient events dropped at this position because the reader was too slow. Durable events are never
   * dropped.
   */
  | { readonly type: "events.dropped"; readonly count: number }
  /**
   * Durable events removed by `pruneThread`: those with the sequence numbers `from` to `to`, of any branch. Only in
   * `streamEvents`. `seq` is `to`; `at` and `branch` are those of the next event.
   */
  | { readonly type: "events.pruned"; readonly from: number; readonly to: number }
  /**
   * What is open in the run at work and not saved yet. Drop the open messages and calls shown so far, and show these;
   * the next deltas continue them. Only in `streamEvents` with `follow`: after each connect and each gap. `run` is
   * undefined when no run of the thread is at work within reach.
   */
  | ({ readonly type: "snapshot"; readonly run: string | undefined } & OpenWork);

/** Event of a run, with its position. */
export type RunEvent = EventPosition & RunEventBody;
