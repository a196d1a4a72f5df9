/** A conversation of one agent with a scripted model, and everything that was seen of it. */
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

/** What was seen. */
export interface Talk {
  readonly events: readonly RunEvent[];
  /** How the calls ended, in that order. */
  readonly results: readonly ToolResult[];
  /** What the model was sent, one request after the other. */
  readonly wires: readonly ModelRequest[];
  /** How the run ended: its status, or the code of its error. */
  readonly status: string;
}

/** Settings of the agent beside its tools. */
type Settings = Partial<Omit<Parameters<typeof createAgent<NoState>>[0], "name" | "model" | "tools">>;

/** Have a conversation in which the model answers from `script`, then says that it is done. */
export async function talk(
  tools: readonly Tool[],
  script: readonly ScriptedEntry[],
  settings: Settings = {},
  watch: (handle: RunHandle<AgentState<NoState>["state"]>, event: RunEvent) => void = () => undefined,
): Promise<Talk> {
  const model = scriptedModel([...script, say("Done.")]);
  const handle = agentOf(model, tools, settings).run({ input: "Go." });
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

function agentOf(model: Model, tools: readonly Tool[], settings: Settings) {
  return createAgent({ ...settings, name: "talker", model, tools });
}

/** The text of a result. */
export function textOfResult(result: ToolResult | undefined): string {
  return (result?.content ?? []).map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("");
}
