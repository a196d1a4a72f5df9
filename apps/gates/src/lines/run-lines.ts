/**
 * `lines`: random output of plugins. Each call gets its own result or an error, no call hangs, and no process is left
 * running.
 */
import { fileURLToPath } from "node:url";
import {
  channel,
  defineGraph,
  defineState,
  END,
  getMessageText,
  type Message,
  run,
  START,
  toolNode,
} from "@statewright/core";
import { loadPlugin, type Plugin } from "@statewright/plugins";
import { createChance } from "@statewright/testing";
import { createHostileLines, type HostileLines, lineLimit } from "./hostile-lines.ts";

const pluginPath = fileURLToPath(new URL("noisy-plugin.mjs", import.meta.url));
const callsPerMessage = 20;
const timeoutMs = 60_000;

/**
 * Makes `count` calls, in messages of twenty calls; each message has its own seed. Returns true without violations.
 */
export async function runLines(count: number, from: number): Promise<boolean> {
  const startedAt = performance.now();
  const violations: string[] = [];
  const pids = new Set<number>();
  const sums = { calls: 0, broken: 0 };
  const plugins = await Promise.all(["1", "2"].map(startPlugin));
  for (let seed = from; sums.calls < count; seed++) {
    const plugin = plugins[seed % plugins.length];
    if (plugin === undefined) break;
    if (plugin.pid !== undefined) pids.add(plugin.pid);
    const chance = createChance(seed);
    const batch: HostileLines[] = [];
    for (let index = 0; index < callsPerMessage; index++) {
      const previousAnswer = batch.at(-1)?.answer;
      const previous =
        previousAnswer === undefined ? undefined : { id: `c${seed}_${index - 1}`, answer: previousAnswer };
      batch.push(createHostileLines(chance, `c${seed}_${index}`, `answer ${seed} ${index} é🙂\u2028`, previous));
    }
    const results = await runBatch(plugin, seed, batch);
    if (results === undefined) {
      violations.push(`seed ${seed}: no result within ${timeoutMs} ms`);
      break;
    }
    sums.calls += batch.length;
    sums.broken += batch.filter(({ answer }) => answer === undefined).length;
    violations.push(...findViolations(seed, batch, { results, protocol: seed % plugins.length === 0 ? 1 : 2 }));
  }
  for (const plugin of plugins) if (plugin.pid !== undefined) pids.add(plugin.pid);
  await Promise.all(plugins.map((plugin) => plugin.close()));
  for (const pid of pids) if (isAlive(pid)) violations.push(`the plugin process ${pid} is still running`);
  for (const violation of violations.slice(0, 20)) {
    console.log(violation);
    const seed = /^seed (\d+)/.exec(violation)?.[1];
    if (seed !== undefined)
      console.log(`  reproduce: npm run gates -- lines --count ${callsPerMessage} --from ${seed}`);
  }
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  console.log(`hostile lines: ${sums.calls} calls, ${sums.broken} of them with a protocol error, in ${seconds} s`);
  console.log(`  violations: ${violations.length}`);
  return violations.length === 0;
}

function startPlugin(protocol: string): Promise<Plugin> {
  return loadPlugin({
    command: process.execPath,
    args: [pluginPath, protocol],
    maxLineLength: lineLimit,
    maxRestarts: Number.MAX_SAFE_INTEGER,
  });
}

interface CallResult {
  readonly text: string;
  readonly isError: boolean;
}

/** Returns the tool results of a message's calls; undefined after a timeout. */
async function runBatch(
  plugin: Plugin,
  seed: number,
  batch: readonly HostileLines[],
): Promise<readonly CallResult[] | undefined> {
  const graph = defineGraph({ name: "calls", state: defineState({ messages: channel.messages() }) })
    .nodes({ tools: toolNode({ tools: plugin.tools }) })
    .edges({ [START]: "tools", tools: END });
  const callMessage: Message = {
    role: "assistant",
    id: "asks",
    finish: "calls",
    content: batch.map(({ pieces }, index) => ({
      type: "call",
      id: `c${seed}_${index}`,
      name: "noisy",
      args: { pieces },
    })),
  };
  const handle = run(graph, { input: { messages: [callMessage] } });
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, timeoutMs, undefined);
  });
  const outcome = await Promise.race([handle.result, timeout]);
  clearTimeout(timer);
  if (outcome === undefined) {
    await handle.cancel();
    return undefined;
  }
  return outcome.state.messages.flatMap((message) =>
    message.role === "tool" ? [{ text: getMessageText(message), isError: message.isError === true }] : [],
  );
}

/**
 * Finds calls with a wrong result. Protocol 1 runs calls in sequence; in protocol 2, a protocol error also fails
 * the concurrent calls.
 */
function findViolations(
  seed: number,
  batch: readonly HostileLines[],
  { results, protocol }: { readonly results: readonly CallResult[]; readonly protocol: 1 | 2 },
): readonly string[] {
  const mayFail = protocol === 2 && batch.some(({ answer }) => answer === undefined);
  return batch.flatMap(({ kind, answer }, index) => {
    const result = results[index];
    const brokeProtocol =
      result?.isError === true && /violated the protocol|exited with code|was stopped|has ended/.test(result.text);
    const isExpected = answer === undefined ? brokeProtocol : result?.isError === false && result.text === answer;
    if (isExpected || (mayFail && brokeProtocol)) return [];
    return [`seed ${seed}: call ${index} (${kind}) got ${JSON.stringify(result)?.slice(0, 200)}`];
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
