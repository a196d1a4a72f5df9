/** Pure mapper from the events of a run to the chunks of one assistant message, and to the message itself. */
import type { Json, Message, RunEvent, RunStatus, Usage } from "@statewright/core";
import { sumTokenCounts } from "@statewright/core/adapter";
import type { ClosedInterrupt } from "@statewright/core/inspect";
import { statusTable } from "../service/status-table.ts";
import { listWrittenMessages } from "./list-written-messages.ts";
import { MessageDraft, type OpenSource } from "./message-draft.ts";
import {
  type CallPart,
  type CallResult,
  createResponseChunk,
  listApprovalChunks,
  listResultChunks,
} from "./message-part.ts";
import { listPieces, listUserParts, toErrorText, toToolOutput } from "./ui-blocks.ts";
import type { UiChunk, UiFinishReason, UiMessage, UiMetadata } from "./ui-chunk.ts";
import { getUiCallId, readAnswer, readVerdict, toUiInterrupt } from "./ui-interrupts.ts";

/** Frame for a mapper: an event, or what events do not hold. */
export type UiFrame =
  | RunEvent
  /** Interrupts that were answered before the run went on. */
  | { readonly type: "ui.answered"; readonly run: string; readonly interrupts: readonly ClosedInterrupt[] }
  /** Public value of a channel after a superstep. */
  | { readonly type: "ui.state"; readonly run: string; readonly channel: string; readonly value: Json }
  /** Status of a run whose last event was read. */
  | {
      readonly type: "ui.status";
      readonly run: string;
      readonly status: RunStatus;
      readonly error?: UiFailure | undefined;
    };

/** Code and title of a failure. */
export interface UiFailure {
  readonly code: string;
  readonly title: string;
}

/** Options of a mapper. */
export interface RunMapperOptions {
  readonly thread: string;
  readonly run: string;
  readonly branch: string;
  /** Shows messages that users send to the run at work. Default false. */
  readonly steering?: boolean | undefined;
}

type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { readonly type: Type }>;
type ToolEvent = EventOf<Extract<RunEvent["type"], `tool.${string}`>>;

/** Names of data chunks of the server: a custom event with such a name gets the prefix `custom-`. */
const reservedNames: ReadonlySet<string> = new Set(["agent", "checkpoint", "progress", "state"]);

/**
 * Maps the frames of one run, all its attempts, from its first event on. Frames of other runs and branches give
 * nothing. Equal frames give equal chunks.
 */
export class RunMapper {
  readonly #options: RunMapperOptions;
  readonly #draft = new MessageDraft();
  readonly #usage: (Usage | undefined)[] = [];
  readonly #inputIds: Set<string> = new Set();
  readonly #steeringIds: Set<string> = new Set();
  readonly #messageIds: Set<string> = new Set();
  /** Pieces of messages of subgraphs by id: the graph around may save the same message again. */
  readonly #innerPieces: Map<string, string> = new Map();
  #isAtWork = false;
  #hasEnded = false;
  #finish: UiFinishReason = "stop";

  constructor(options: RunMapperOptions) {
    this.#options = options;
  }

  /** True between the first and the last event of an attempt of the run. */
  get isAtWork(): boolean {
    return this.#isAtWork;
  }

  /** True after the last event of an attempt, until another attempt begins. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Ids of the messages of users that the run began with. */
  get inputIds(): ReadonlySet<string> {
    return this.#inputIds;
  }

  /** Ids of the messages that users sent to the run at work. */
  get steeringIds(): ReadonlySet<string> {
    return this.#steeringIds;
  }

  get lastInputId(): string | undefined {
    return [...this.#inputIds].at(-1);
  }

  /** True if the message has parts. */
  get hasParts(): boolean {
    return this.#draft.hasParts;
  }

  /** True if the message shows the call. */
  hasCall(callId: string): boolean {
    return this.#draft.findCall(callId) !== undefined;
  }

  /** Ids of the saved messages of models. */
  get messageIds(): ReadonlySet<string> {
    return this.#messageIds;
  }

  /** First chunk of a stream. */
  createStart(): UiChunk {
    return { type: "start", messageId: this.#options.run, messageMetadata: this.#getPlace() };
  }

  /** Returns the message as far as it is known. */
  toMessage(): UiMessage {
    return { id: this.#options.run, role: "assistant", metadata: this.#getMetadata(), parts: this.#draft.toParts() };
  }

  /** Maps a frame. */
  map(frame: UiFrame): UiChunk[] {
    if (isUiFrame(frame)) {
      if (frame.run === this.#options.run) this.#mapUiFrame(frame);
    } else if (frame.branch === this.#options.branch) this.#mapEvent(frame);
    return this.#draft.takeChunks();
  }

  #mapUiFrame(frame: Exclude<UiFrame, RunEvent>): void {
    switch (frame.type) {
      case "ui.answered":
        for (const interrupt of frame.interrupts) this.#applyAnswer(interrupt);
        return;
      case "ui.state":
        this.#draft.addData({ kind: "data", name: "state", id: frame.channel, data: frame.value });
        return;
      case "ui.status":
        if (!this.#hasEnded) this.#end(frame.status, frame.error);
    }
  }

  #mapEvent(event: RunEvent): void {
    if (event.type === "run.started") {
      this.#isAtWork = event.run === this.#options.run;
      if (this.#isAtWork) this.#hasEnded = false;
      return;
    }
    if (event.type === "run.cancelled" && event.run !== undefined) {
      if (event.run === this.#options.run) this.#end("cancelled", undefined, event.reason);
      return;
    }
    if (event.type === "step.committed" && event.run === this.#options.run) {
      this.#mapCommit(event);
      return;
    }
    if (!this.#isAtWork) return;
    if (event.type === "snapshot") {
      this.#mapSnapshot(event);
      return;
    }
    if (event.within !== undefined && isInsideToolCall(event)) {
      this.#mapNested(event);
      return;
    }
    if ("callId" in event && event.type !== "message.call_delta") {
      this.#mapTool(event);
      return;
    }
    this.#mapShown(event);
  }

  #mapShown(event: RunEvent): void {
    switch (event.type) {
      case "message.delta": {
        this.#draft.addText(getSource(event, event.messageId), event.kind, event.text);
        return;
      }
      case "message.call_delta": {
        this.#draft.addCallText(getSource(event, event.messageId), event);
        return;
      }
      case "message.completed": {
        this.#draft.complete(getSource(event, event.message.id), listPieces(event.message.content));
        return;
      }
      case "message.retracted": {
        this.#draft.retract(getSource(event, event.messageId));
        return;
      }
      case "node.progress": {
        this.#pushData("progress", event.task, { node: event.node, text: event.text });
        return;
      }
      case "custom": {
        const name = reservedNames.has(event.name) ? `custom-${event.name}` : event.name;
        this.#draft.addData({ kind: "data", name, data: event.payload });
        return;
      }
      case "run.waiting":
        for (const interrupt of event.interrupts) this.#showInterrupt(interrupt);
        {
          this.#end("waiting");
          return;
        }
      case "run.completed": {
        this.#end("done");
        return;
      }
      case "run.paused": {
        this.#end("paused");
        return;
      }
      case "run.cancelled": {
        this.#end("cancelled", undefined, event.reason);
        return;
      }
      case "run.failed":
        // The title comes with the status of the run.
        this.#isAtWork = false;
    }
  }

  /** Shows saved messages that were not streamed, and the results of calls. */
  #mapCommit(event: EventOf<"step.committed">): void {
    const isNested = event.within !== undefined && isInsideToolCall(event);
    for (const message of listWrittenMessages(event.changes))
      if (!isNested) this.#applyMessage(event, message);
      else if (message.role === "tool") this.#applyNestedResult(event.withinId ?? "", message);
    const { withinId } = event;
    this.#draft.commit((source) => withinId === undefined || source.startsWith(`${withinId}/`));
    if (withinId !== undefined) return;
    const { checkpoint, step, next } = event;
    if (checkpoint !== undefined) this.#pushData("checkpoint", undefined, { checkpoint, step, next });
  }

  #applyMessage(event: EventOf<"step.committed">, message: Message): void {
    switch (message.role) {
      case "user": {
        this.#applyUserMessage(event, message);
        return;
      }
      case "assistant": {
        const pieces = listPieces(message.content);
        const text = JSON.stringify(pieces);
        const isShown = event.within === undefined && this.#innerPieces.get(message.id) === text;
        if (event.within === undefined) {
          this.#messageIds.add(message.id);
          this.#usage.push(message.usage);
          this.#finish = toFinishReason(message.finish);
        } else this.#innerPieces.set(message.id, text);
        if (!isShown) this.#draft.complete(getSource(event, message.id), pieces);
        return;
      }
      case "tool": {
        const call = this.#draft.findCall(message.callId);
        if (event.within === undefined) this.#usage.push(message.usage);
        if (call !== undefined) this.#applyResult(call, message);
      }
    }
  }

  #applyUserMessage({ source, within }: EventOf<"step.committed">, message: Message & { readonly role: "user" }): void {
    const { id } = message;
    if (within !== undefined || this.#inputIds.has(id) || this.#steeringIds.has(id)) return;
    (source === "input" ? this.#inputIds : this.#steeringIds).add(id);
    if (source === "input" || this.#options.steering !== true) return;
    this.#draft.addSteering({ kind: "steering", id, parts: listUserParts(message) });
  }

  #mapSnapshot({ messages, tools }: EventOf<"snapshot">): void {
    const shown = messages.filter((message) => message.branch === this.#options.branch && !isInsideToolCall(message));
    this.#draft.showOpen(
      shown.map(
        (message): OpenSource => ({ ...message, source: getSource(message, message.id), isComplete: message.complete }),
      ),
    );
    for (const tool of tools) {
      const call = tool.branch === this.#options.branch && !isInsideToolCall(tool) && this.#draft.findCall(tool.callId);
      if (call === false || call === undefined) continue;
      if (tool.status !== "started") this.#draft.showCall(call);
      if (tool.update !== undefined) this.#applyUpdate(call, tool.update.content);
      const line = tool.progress.at(-1);
      if (line !== undefined) this.#pushData("progress", tool.callId, { text: line });
    }
  }

  #mapTool(event: ToolEvent): void {
    const call = this.#draft.findCall(event.callId);
    if (call === undefined) return;
    switch (event.type) {
      case "tool.body_started":
        // A call that a recovered run makes again has a result that was never saved.
        if (call.result !== undefined) {
          delete call.result;
          call.isShown = false;
        }
        {
          this.#draft.showCall(call);
          return;
        }
      case "tool.progress": {
        this.#pushData("progress", event.callId, { text: event.text });
        return;
      }
      case "tool.update":
        this.#draft.showCall(call);
        {
          this.#applyUpdate(call, event.partial.content);
          return;
        }
      case "tool.denied": {
        this.#deny(call, event.reason);
        return;
      }
      case "tool.completed":
      case "tool.failed": {
        this.#applyResult(call, event.result);
        return;
      }
    }
  }

  /** Events of an agent inside a tool call: its text and its calls are no parts of the message. */
  #mapNested(event: RunEvent): void {
    const { within: agent, withinId: id } = event;
    switch (event.type) {
      case "message.delta": {
        this.#pushData("agent", id, { agent, messageId: event.messageId, kind: event.kind, text: event.text });
        return;
      }
      case "tool.body_started":
      case "tool.completed":
      case "tool.failed": {
        const status = event.type === "tool.body_started" ? "running" : event.type.slice("tool.".length);
        this.#pushData("agent", id, { agent, callId: event.callId, tool: event.tool, status });
        return;
      }
    }
  }

  /** Ends the part of an interrupt inside a sub-agent with the result of its call. */
  #applyNestedResult(withinId: string, message: Message & { readonly role: "tool" }): void {
    const { id, callId } = message;
    const task = id.slice(0, id.length - callId.length - 1);
    const call =
      this.#draft.findInterruptCall(`${withinId}/${id}`) ??
      this.#draft.findInterruptCall(`${withinId}/${task}/client:${callId}`);
    if (call !== undefined) this.#applyResult(call, message);
  }

  #applyUpdate(call: CallPart, content: EventOf<"tool.update">["partial"]["content"]): void {
    const output = typeof content === "string" ? content : toToolOutput(content);
    this.#setResult(call, { kind: "output", output, isPreliminary: true });
  }

  #applyResult(
    call: CallPart,
    { content, isError }: Pick<Message & { readonly role: "tool" }, "content" | "isError">,
  ): void {
    if (call.result !== undefined && !(call.result.kind === "output" && call.result.isPreliminary)) return;
    this.#draft.showCall(call);
    if (isError && call.approval?.response?.approved === false) {
      this.#setResult(call, { kind: "denied" });
      return;
    }
    // A result without a known answer: the approval was given elsewhere.
    if (call.approval !== undefined) this.#respond(call, { approved: true });
    const result: CallResult = isError
      ? { kind: "error", text: toErrorText(content) }
      : { kind: "output", output: toToolOutput(content), isPreliminary: false };
    this.#setResult(call, result);
  }

  #setResult(call: CallPart, result: CallResult): void {
    call.result = result;
    this.#draft.push(...listResultChunks(call));
  }

  /** Shows a denial. A denial by a rule is an approval that was refused without a person. */
  #deny(call: CallPart, reason: string): void {
    this.#draft.showCall(call);
    if (call.approval === undefined) {
      call.approval = { id: `auto:${call.callId}`, isAutomatic: true, response: { approved: false, reason } };
      this.#draft.push(...listApprovalChunks(call));
    } else this.#respond(call, { approved: false, reason });
    this.#setResult(call, { kind: "denied" });
  }

  #respond({ approval }: CallPart, response: { readonly approved: boolean; readonly reason?: string }): void {
    if (approval === undefined || approval.response !== undefined) return;
    approval.response = response;
    this.#draft.push(createResponseChunk(approval.id, response));
  }

  #showInterrupt(interrupt: EventOf<"run.waiting">["interrupts"][number]): void {
    const shown = toUiInterrupt(interrupt);
    const { id, kind, name, input, reason } = shown;
    const callId = getUiCallId(shown);
    let call = this.#draft.findCall(callId);
    if (call === undefined) {
      const { schema, expiresAt } = interrupt;
      const metadata = {
        interrupt: interrupt.key,
        ...(schema === undefined ? {} : { schema }),
        ...(expiresAt === undefined ? {} : { expiresAt }),
      };
      const value = { value: input, isInvalid: false };
      call = { kind: "call", source: undefined, callId, name, argsText: "", input: value, isShown: true, metadata };
      this.#draft.addInterruptCall(call);
    }
    this.#draft.showCall(call);
    if (kind !== "approval" || call.approval?.id === id) return;
    call.approval = { id, ...(reason === undefined ? {} : { reason }) };
    this.#draft.push(...listApprovalChunks(call));
  }

  #applyAnswer(interrupt: ClosedInterrupt): void {
    const shown = toUiInterrupt(interrupt);
    const call = this.#draft.findCall(getUiCallId(shown));
    if (call === undefined) return;
    if (shown.kind === "approval") {
      if (call.approval?.id !== shown.id) return;
      this.#respond(call, readVerdict(interrupt.answer));
    }
    // The result of a call comes with its tool message. An interrupt without a call has no other result.
    if (shown.kind !== "other" || call.result !== undefined) return;
    const answer = readAnswer(interrupt.answer);
    this.#setResult(
      call,
      "errorText" in answer
        ? { kind: "error", text: answer.errorText }
        : { kind: "output", output: answer.output, isPreliminary: false },
    );
  }

  #end(status: RunStatus, error?: UiFailure, reason?: string): void {
    const { aiSdk: word } = statusTable[status];
    if (word === undefined) return;
    this.#isAtWork = false;
    this.#hasEnded = true;
    this.#draft.finishStep();
    if (word === "stop") this.#draft.closeCalls();
    if (word === "abort") {
      this.#draft.push({ type: "abort", ...(reason === undefined ? {} : { reason }) });
      return;
    }
    if (word === "error") {
      const { code, title } = error ?? { code: "internal", title: "The run failed." };
      this.#draft.push({ type: "error", errorText: `${code}: ${title}` });
    }
    this.#draft.push(this.#createFinish(word === "stop" ? this.#finish : word));
  }

  /** The metadata makes clients keep the empty step before it. */
  #createFinish(finishReason: UiFinishReason): UiChunk {
    return { type: "finish", finishReason, messageMetadata: this.#getMetadata() };
  }

  #getMetadata(): UiMetadata {
    const usage = sumTokenCounts(this.#usage);
    return { ...this.#getPlace(), ...(usage === undefined ? {} : { usage }) };
  }

  #getPlace(): UiMetadata {
    return { threadId: this.#options.thread, runId: this.#options.run };
  }

  #pushData(name: string, id: string | undefined, data: unknown): void {
    this.#draft.push({ type: `data-${name}`, ...(id === undefined ? {} : { id }), data, transient: true });
  }
}

function isUiFrame(frame: UiFrame): frame is Exclude<UiFrame, RunEvent> {
  return frame.type.startsWith("ui.");
}

/** Returns the key of a message of a model: ids repeat in the calls of inner graphs. */
function getSource({ withinId }: { readonly withinId?: string }, id: string): string {
  return withinId === undefined ? id : `${withinId}/${id}`;
}

/** Returns true for an event of a graph that a tool call runs: its namespace names a call. */
function isInsideToolCall({ withinId = "" }: { readonly withinId?: string }): boolean {
  return /(^|\/)\d+:\d+:\d+(\/|$)/.test(withinId);
}

/** Maps the finish reason of the last message of a completed run. */
function toFinishReason(finish: (Message & { readonly role: "assistant" })["finish"]): UiFinishReason {
  if (finish === "length") return "length";
  return finish === "filter" ? "content-filter" : "stop";
}
