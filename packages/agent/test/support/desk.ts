/** An agent on a thread, with its tool executions, answers and events. */
import { createAgent } from "@statewright/agent";
import {
  type DefinedTool,
  defineTool,
  type Message,
  type Middleware,
  memoryStore,
  type RunEvent,
  type RunHandle,
  type RunResult,
  type Store,
  type Tool,
  type ToolMessage,
  type ToolSafety,
} from "@statewright/core";
import {
  rejectInvalidTranscripts,
  type ScriptedEntry,
  scriptedModel,
  type VirtualClock,
  virtualClock,
} from "@statewright/testing";
import * as z from "zod";

export type DeskState = { readonly messages: readonly Message[] };
export type DeskResult = RunResult<DeskState>;

/** Creates a tool that records its execution in `log`. */
export function createRecordingTool(
  log: string[],
  name: string,
  more: Partial<{
    readonly safety: Partial<ToolSafety>;
    readonly effect: "pure" | "idempotent" | "once";
    readonly gives: unknown;
  }> = {},
): DefinedTool<string, { readonly text: string }> {
  return defineTool({
    name,
    description: `Does ${name}.`,
    input: z.object({ text: z.string().default("") }),
    effect: more.effect ?? "idempotent",
    ...(more.safety === undefined ? {} : { safety: more.safety }),
    run: ({ text }) => {
      log.push(text === "" ? name : `${name} ${text}`);
      return more.gives ?? `${name} done`;
    },
  }) as DefinedTool<string, { readonly text: string }>;
}

export interface Desk {
  readonly world: VirtualClock;
  readonly events: readonly RunEvent[];
  readonly run: (input?: string) => RunHandle<DeskState>;
  readonly resume: (answers?: Readonly<Record<string, unknown>>, store?: Store) => RunHandle<DeskState>;
}

/** Creates an agent with a scripted model that refuses transcripts which a provider would refuse. */
export function createDesk(options: {
  readonly tools: readonly Tool[];
  readonly middleware: readonly Middleware[];
  readonly script: readonly ScriptedEntry[];
  readonly store?: Store;
  readonly world?: VirtualClock;
  readonly maxToolConcurrency?: number;
}): Desk {
  const { store = memoryStore(), world = virtualClock(), script, ...rest } = options;
  const events: RunEvent[] = [];
  const agent = createAgent({
    name: "desk",
    model: rejectInvalidTranscripts(scriptedModel(script)),
    store,
    ...rest,
  });
  const listen = (handle: RunHandle<DeskState>): RunHandle<DeskState> => {
    handle.on((event) => events.push(event));
    return handle;
  };
  return {
    world,
    events,
    run: (input = "go") => listen(agent.run({ thread: "t", input, world })),
    resume: (answers = {}, other = store) => listen(agent.resume({ thread: "t", store: other, world, answers })),
  };
}

/** Returns the texts of tool answers, errors with a leading `!`. */
export function listAnswers({ state }: DeskResult): readonly string[] {
  return state.messages
    .filter((message): message is ToolMessage => message.role === "tool")
    .map(
      ({ content, isError }) =>
        `${isError ? "!" : ""}${content.map((block) => (block.type === "text" ? block.text : JSON.stringify(block))).join("")}`,
    );
}

/** Returns the open interrupts of a waiting run. */
export function listQuestions(result: DeskResult) {
  if (result.status !== "waiting") throw new Error(`it is ${result.status}`);
  return result.interrupts;
}
