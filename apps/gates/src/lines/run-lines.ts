/** `lines`: what plugins write, at random. Each call gets its own answer or an error, nothing hangs, and no process is left. */
import { fileURLToPath } from "node:url";
import { defineGraph, defineState, END, type Message, messages, run, START, textOf, toolNode } from "@statewright/core";
import { loadPlugin, type Plugin } from "@statewright/plugins";
import { chanceOf } from "@statewright/testing";
import { type HostileLines, hostileLines, longestLine } from "./hostile-lines.ts";

const noisy = fileURLToPath(new URL("noisy-plugin.mjs", import.meta.url));
const callsInAMessage = 20;
const longestMs = 60_000;

/** Make so many calls, in messages of twenty; a message is a seed. Tells whether each was answered rightly. */
export async function runLines(count: number, from: number): Promise<boolean> {
  const began = performance.now();
  const violations: string[] = [];
  const pids = new Set<number>();
  const sums = { calls: 0, broken: 0 };
  const plugins = await Promise.all(["1", "2"].map(start));
  for (let seed = from; sums.calls < count; seed++) {
    const plugin = plugins[seed % plugins.length];
    if (plugin === undefined) break;
    if (plugin.pid !== undefined) pids.add(plugin.pid);
    const chance = chanceOf(seed);
    const made: HostileLines[] = [];
    for (let index = 0; index < callsInAMessage; index++) {
      const answer = made.at(-1)?.answer;
      const before = answer === undefined ? undefined : { id: `c${seed}_${index - 1}`, answer };
      made.push(hostileLines(chance, `c${seed}_${index}`, `answer ${seed} ${index} é🙂\u2028`, before));
    }
    const answers = await answersOf(plugin, seed, made);
    if (answers === undefined) {
      violations.push(`seed ${seed}: no answer within ${longestMs} ms`);
      break;
    }
    sums.calls += made.length;
    sums.broken += made.filter(({ answer }) => answer === undefined).length;
    violations.push(...wrong(seed, made, answers, seed % plugins.length === 0));
  }
  for (const plugin of plugins) if (plugin.pid !== undefined) pids.add(plugin.pid);
  await Promise.all(plugins.map((plugin) => plugin.close()));
  for (const pid of pids) if (isAlive(pid)) violations.push(`the process ${pid} is left`);
  for (const violation of violations.slice(0, 20)) {
    console.log(violation);
    const seed = /^seed (\d+)/.exec(violation)?.[1];
    if (seed !== undefined)
      console.log(`  repeat it: npm run gates -- lines --count ${callsInAMessage} --from ${seed}`);
  }
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  console.log(`hostile lines: ${sums.calls} calls, of which ${sums.broken} broke the protocol, in ${seconds} s`);
  console.log(`  violations: ${violations.length}`);
  return violations.length === 0;
}

function start(protocol: string): Promise<Plugin> {
  return loadPlugin({
    command: process.execPath,
    args: [noisy, protocol],
    maxLineLength: longestLine,
    maxRestarts: Number.MAX_SAFE_INTEGER,
  });
}

interface Answer {
  readonly text: string;
  readonly isError: boolean;
}

/** The answers to the calls of a message; nothing when they do not come. */
async function answersOf(
  plugin: Plugin,
  seed: number,
  made: readonly HostileLines[],
): Promise<readonly Answer[] | undefined> {
  const graph = defineGraph({ name: "calls", state: defineState({ messages: messages() }) })
    .nodes({ tools: toolNode({ tools: plugin.tools }) })
    .edges({ [START]: "tools", tools: END });
  const asks: Message = {
    role: "assistant",
    id: "asks",
    finish: "calls",
    content: made.map(({ pieces }, index) => ({
      type: "call",
      id: `c${seed}_${index}`,
      name: "noisy",
      args: { pieces },
    })),
  };
  const handle = run(graph, { input: { messages: [asks] } });
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, longestMs, undefined);
  });
  const done = await Promise.race([handle.result, late]);
  clearTimeout(timer);
  if (done === undefined) {
    await handle.cancel();
    return undefined;
  }
  return done.state.messages.flatMap((message) =>
    message.role === "tool" ? [{ text: textOf(message), isError: message.isError === true }] : [],
  );
}

/** In the first protocol each call is alone; in the second, one that breaks it takes along those that are under way. */
function wrong(
  seed: number,
  made: readonly HostileLines[],
  answers: readonly Answer[],
  isAlone: boolean,
): readonly string[] {
  const mayFail = !isAlone && made.some(({ answer }) => answer === undefined);
  return made.flatMap(({ how, answer }, index) => {
    const got = answers[index];
    const broke = got?.isError === true && /broke the rule|ended/.test(got.text);
    const isRight = answer === undefined ? broke : got?.isError === false && got.text === answer;
    if (isRight || (mayFail && broke)) return [];
    return [`seed ${seed}: call ${index} (${how}) got ${JSON.stringify(got)?.slice(0, 200)}`];
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
