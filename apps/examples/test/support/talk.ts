/** A conversation of one agent with a scripted model, on a virtual clock. */

import { type ScriptedEntry, say, scriptedModel, type VirtualClock, virtualClock } from "@statewright/testing";
import {
  createAgent,
  type Model,
  type ModelRequest,
  type RunEvent,
  type RunHandle,
  type Tool,
  type ToolResult,
  type World,
} from "statewright";

/** A running conversation with observable events and a stop function. The test advances the clock. */
export interface RunningConversation {
  readonly world: VirtualClock;
  readonly handle: RunHandle<unknown>;
  readonly events: readonly RunEvent[];
  /** Model requests, in order. */
  readonly wires: readonly ModelRequest[];
  /** How the calls ended, in that order. */
  readonly results: () => readonly ToolResult[];
  /** The partial results so far. */
  readonly updates: () => readonly { readonly content: unknown; readonly details?: unknown }[];
  /** Let time go by until the conversation is over. */
  readonly end: () => Promise<string>;
}

/** Begin a conversation: `start` runs an agent with the model that answers from `script`, then says "Done.". */
export function startConversationWith(
  script: readonly ScriptedEntry[],
  start: (model: Model, world: World) => RunHandle<unknown>,
): RunningConversation {
  const model = scriptedModel([...script, say("Done.")]);
  const world = virtualClock({ waitsForWork: false });
  const handle = start(model, world);
  const events: RunEvent[] = [];
  handle.on((event) => {
    events.push(event);
  });
  return {
    world,
    handle,
    events,
    wires: model.requests,
    results: () =>
      events.flatMap((event) =>
        event.type === "tool.completed" || event.type === "tool.failed" ? [event.result] : [],
      ),
    updates: () => events.flatMap((event) => (event.type === "tool.update" ? [event.partial] : [])),
    end: async () => {
      let status: string | undefined;
      void handle.result.then(
        (result) => {
          status = result.status;
        },
        () => {
          status = "failed";
        },
      );
      while (status === undefined) if (!(await world.next())) await new Promise((resolve) => setImmediate(resolve));
      return status;
    },
  };
}

/** Begin a conversation of an agent that has only tools. */
export function startConversation(tools: readonly Tool[], script: readonly ScriptedEntry[]): RunningConversation {
  return startConversationWith(script, (model, world) =>
    createAgent({ name: "talker", model, tools }).run({ input: "Go.", world }),
  );
}

/** Have such a conversation to its end. */
export async function runConversation(
  tools: readonly Tool[],
  script: readonly ScriptedEntry[],
): Promise<RunningConversation> {
  const live = startConversation(tools, script);
  await live.end();
  return live;
}

/** The text of a result's first block. */
export function getResultText(result: ToolResult | undefined): string | undefined {
  const [first] = result?.content ?? [];
  return first?.type === "text" ? first.text : undefined;
}

/** Everything that one request holds, as text. */
export function wireText(wire: ModelRequest | undefined): string {
  return JSON.stringify([wire?.instructions, wire?.messages, wire?.tools]);
}

/** The schema of the first tool on a wire. */
export function getSchema(wire: ModelRequest | undefined): unknown {
  return wire?.tools[0]?.inputSchema;
}
