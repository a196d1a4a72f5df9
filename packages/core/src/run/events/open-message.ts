/** Messages and tool calls of a run at work that no durable event contains yet. */
import type { ToolOutput } from "../../tool/result.ts";

/** Place of a message or a call: its branch, its task, and the inner graph as in events. */
interface OpenPlace {
  readonly branch: string;
  readonly node: string;
  readonly task: string;
  readonly within?: string;
  readonly withinId?: string;
}

/** Arguments of a tool call, as far as the model has streamed them. */
export interface OpenCallArgs {
  readonly callId: string;
  readonly tool: string;
  readonly argsText: string;
}

/** Message of a model that is not saved yet: everything streamed so far. */
export interface OpenMessage extends OpenPlace {
  /** Id of the future message, as `messageId` of its deltas. */
  readonly id: string;
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly OpenCallArgs[];
  /** True after `message.completed`: the whole message, which waits for the commit of its superstep. */
  readonly complete: boolean;
}

/** Tool call whose result is not saved yet. */
export interface OpenToolCall extends OpenPlace {
  readonly callId: string;
  readonly tool: string;
  readonly label?: string | undefined;
  /** `started`: checked, and may wait for approval. `running`: the body of the tool works. */
  readonly status: "started" | "running" | "completed" | "failed";
  /** Newest lines of progress, at most 100. */
  readonly progress: readonly string[];
  /** Newest partial result. */
  readonly update?: ToolOutput;
}

/** Message whose model call begins again: the text of each failed request was another one. */
export interface RetriedMessage extends OpenPlace {
  readonly id: string;
  /** Failed requests for the message so far. */
  readonly failedRequests: number;
}

/** Open messages and tool calls, each in order of their start. */
export interface OpenWork {
  readonly messages: readonly OpenMessage[];
  readonly tools: readonly OpenToolCall[];
  /** Messages that are not saved yet and have failed requests, with text and without. Absent for none. */
  readonly retried?: readonly RetriedMessage[];
}
