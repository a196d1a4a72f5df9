/** B20: one call of a plugin, from Node to Python and back, over stdin and stdout. */
import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { loadPlugin } from "@statewright/plugins";
import {
  defineGraph,
  defineState,
  END,
  type Message,
  messages,
  run,
  START,
  type Tool,
  type ToolRuntime,
  toolNode,
} from "statewright";
import type { Case, Contender, Work } from "../case.ts";
import { eachTimed } from "../measure.ts";

const script = fileURLToPath(new URL("../../../examples/tools/python/stats.py", import.meta.url));
const args = { numbers: [1, 2, 3, 4, 5] };

/** Nothing where there is no Python. */
export function pluginCall(): readonly Case[] {
  if (spawnSync("python3", ["--version"]).status !== 0) return [];
  return [
    {
      id: "B20",
      title: "a call of a plugin in Python, one after the other, the median of each round",
      unit: "call",
      budget: { cpuUs: 300, text: "0.3 ms" },
      size: 500,
      contenders: [
        { name: "statewright", role: "ours", open: alone },
        { name: "statewright, each in a run of its own", role: "ours", open: inRuns },
        barePipe(),
      ],
      checks: [{ of: "statewright", to: "the bare pipe", measure: "wall", atMost: 3 }],
    },
  ];
}

/** What a tool node does with a call of it, without the tool node. */
async function alone(): Promise<Work> {
  const plugin = await loadPlugin({ command: "python3", args: [script] });
  const [stats] = plugin.tools;
  const call = { id: "call", name: "stats", args };
  const runtime = { callId: "call", signal: new AbortController().signal } as ToolRuntime;
  return {
    run: (size) =>
      eachTimed(size, async () => {
        await stats?.call(undefined, runtime, call);
      }),
    close: () => closed(() => plugin.close()),
  };
}

/** A run for each call: its machine, its graph and its transcript besides. */
async function inRuns(): Promise<Work> {
  const plugin = await loadPlugin({ command: "python3", args: [script] });
  const graph = answeringCalls(plugin.tools);
  const asking: Message = {
    role: "assistant",
    id: "asking",
    finish: "calls",
    content: [{ type: "call", id: "call", name: "stats", args }],
  };
  return {
    run: (size) =>
      eachTimed(size, async () => {
        const { state } = await run(graph, { input: { messages: [asking] } }).result;
        const answer = state.messages.at(-1);
        if (answer?.role !== "tool" || answer.isError) throw new Error("the plugin did not answer");
      }),
    close: () => closed(() => plugin.close()),
  };
}

function answeringCalls(tools: readonly Tool[]) {
  return defineGraph({ name: "answer-calls", state: defineState({ messages: messages() }) })
    .nodes({ tools: toolNode({ tools }) })
    .edges({ [START]: "tools", tools: END });
}

/** The same lines, written and read by hand. */
function barePipe(): Contender {
  return {
    name: "the bare pipe",
    role: "limit",
    open: () => {
      const python = spawn("python3", [script], { stdio: ["pipe", "pipe", "inherit"] });
      let answered: (() => void) | undefined;
      let line = "";
      python.stdout.setEncoding("utf8").on("data", (chunk: string) => {
        line += chunk;
        if (!line.endsWith("\n")) return;
        JSON.parse(line);
        line = "";
        answered?.();
      });
      const call = `${JSON.stringify({ type: "call", call_id: "call", params: args })}\n`;
      return {
        run: (size) =>
          eachTimed(size, async () => {
            const answer = new Promise<void>((resolve) => {
              answered = resolve;
            });
            python.stdin.write(call);
            await answer;
          }),
        close: () => closed(() => new Promise((resolve) => python.on("close", resolve).stdin.end())),
      };
    },
  };
}

async function closed(end: () => Promise<unknown>): Promise<undefined> {
  await end();
  return undefined;
}
