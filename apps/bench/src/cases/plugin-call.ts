/** B18 plugin: one plugin call from Node to Python and back, over stdin and stdout. */
import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { loadPlugin } from "@statewright/plugins";
import {
  channel,
  defineGraph,
  defineState,
  END,
  type Message,
  run,
  START,
  type Tool,
  type ToolRuntime,
  toolNode,
} from "statewright";
import type { Case, Contender, Work } from "../case.ts";
import { measureEach } from "../measure.ts";

const script = fileURLToPath(new URL("../../../examples/tools/python/stats.py", import.meta.url));
const args = { numbers: [1, 2, 3, 4, 5] };

/** Empty without Python. */
export function createPluginCallCases(): readonly Case[] {
  if (spawnSync("python3", ["--version"]).status !== 0) return [];
  return [
    {
      id: "B18 plugin",
      title: "call of a Python plugin, calls in sequence, the median of each round",
      unit: "call",
      budget: { cpuUs: 300, text: "0.3 ms" },
      size: 500,
      contenders: [
        { name: "statewright", role: "ours", open: openDirectCalls },
        { name: "statewright, one run per call", role: "ours", open: openCallsInRuns },
        createPipeContender(),
      ],
      checks: [{ subject: "statewright", baseline: "bare pipe", measure: "wall", max: 3 }],
    },
  ];
}

/** Calls the plugin's tool in the same way as a tool node, without a graph. */
async function openDirectCalls(): Promise<Work> {
  const plugin = await loadPlugin({ command: "python3", args: [script] });
  const [stats] = plugin.tools;
  const call = { id: "call", name: "stats", args };
  const runtime = { callId: "call", signal: new AbortController().signal } as ToolRuntime;
  return {
    run: (size) =>
      measureEach(size, async () => {
        await stats?.call(undefined, runtime, call);
      }),
    close: () => closeWork(() => plugin.close()),
  };
}

/** Starts a run for each call, which adds the cost of the machine, the graph and the transcript. */
async function openCallsInRuns(): Promise<Work> {
  const plugin = await loadPlugin({ command: "python3", args: [script] });
  const graph = createToolGraph(plugin.tools);
  const callMessage: Message = {
    role: "assistant",
    id: "asking",
    finish: "calls",
    content: [{ type: "call", id: "call", name: "stats", args }],
  };
  return {
    run: (size) =>
      measureEach(size, async () => {
        const { state } = await run(graph, { input: { messages: [callMessage] } }).result;
        const answer = state.messages.at(-1);
        if (answer?.role !== "tool" || answer.isError)
          throw new Error("plugin call: expected a tool result, got an error or no tool message");
      }),
    close: () => closeWork(() => plugin.close()),
  };
}

function createToolGraph(tools: readonly Tool[]) {
  return defineGraph({ name: "answer-calls", state: defineState({ messages: channel.messages() }) })
    .nodes({ tools: toolNode({ tools }) })
    .edges({ [START]: "tools", tools: END });
}

/** Writes and reads the same lines without a plugin client. */
function createPipeContender(): Contender {
  return {
    name: "bare pipe",
    role: "limit",
    open: () => {
      const python = spawn("python3", [script], { stdio: ["pipe", "pipe", "inherit"] });
      let resolveAnswer: (() => void) | undefined;
      let line = "";
      python.stdout.setEncoding("utf8").on("data", (chunk: string) => {
        line += chunk;
        if (!line.endsWith("\n")) return;
        JSON.parse(line);
        line = "";
        resolveAnswer?.();
      });
      const call = `${JSON.stringify({ type: "call", call_id: "call", params: args })}\n`;
      return {
        run: (size) =>
          measureEach(size, async () => {
            const answer = new Promise<void>((resolve) => {
              resolveAnswer = resolve;
            });
            python.stdin.write(call);
            await answer;
          }),
        close: () => closeWork(() => new Promise((resolve) => python.on("close", resolve).stdin.end())),
      };
    },
  };
}

async function closeWork(close: () => Promise<unknown>): Promise<undefined> {
  await close();
  return undefined;
}
