/** Runs a conversation of one agent with a scripted model and records its effects. */
import { type ScriptedEntry, say, scriptedModel } from "@statewright/testing";
import {
  type AgentState,
  createAgent,
  type Model,
  type ModelRequest,
  type NoState,
  type RunEvent,
  type RunHandle,
  type Tool,
  type ToolResult,
} from "statewright";

/** Recorded conversation. */
export interface Talk {
  readonly events: readonly RunEvent[];
  /** Ends of the tool calls, in order. */
  readonly results: readonly ToolResult[];
  /** Requests of the model. */
  readonly wires: readonly ModelRequest[];
  /** End of the run: its status, or the code of its error. */
  readonly status: string;
}

/** Agent settings other than its tools. */
type Settings = Partial<Omit<Parameters<typeof createAgent<NoState>>[0], "name" | "model" | "tools">>;

/** Runs a conversation in which the model answers from `script` and then with a final text. */
export async function talk(
  tools: readonly Tool[],
  script: readonly ScriptedEntry[],
  settings: Settings = {},
  watch: (handle: RunHandle<AgentState<NoState>["state"]>, event: RunEvent) => void = () => undefined,
): Promise<Talk> {
  const model = scriptedModel([...script, say("Done.")]);
  const handle = createTalkAgent(model, tools, settings).run({ input: "Go." });
  const events: RunEvent[] = [];
  handle.on((event) => {
    events.push(event);
    watch(handle, event);
  });
  const status = await handle.result.then(
    (result) => result.status,
    (error: { readonly code?: string }) => error.code ?? "failed",
  );
  const results = events.flatMap((event) =>
    event.type === "tool.completed" || event.type === "tool.failed" ? [event.result] : [],
  );
  return { events, results, wires: model.requests, status };
}

function createTalkAgent(model: Model, tools: readonly Tool[], settings: Settings) {
  return createAgent({ ...settings, name: "talker", model, tools });
}

/** Returns the text of a result. */
export function textOfResult(result: ToolResult | undefined): string {
  return (result?.content ?? []).map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("");
}
