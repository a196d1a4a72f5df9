/** `npm run example -- <name>`: runs one example offline and prints its events. */
import { stdout } from "node:process";
import { call, type ScriptedEntry, say, scriptedModel } from "@statewright/testing";
import { createAgent, type Tool } from "statewright";
import {
  runChatScene,
  runInvoiceScene,
  runProvidersScene,
  runResearchScene,
  runReviewScene,
  runSupportScene,
} from "./agents/scenes.ts";
import { analyse } from "./analysis.ts";
import { calculator } from "./calculator.ts";
import { deploy } from "./deploy.ts";
import { processItems } from "./items.ts";
import type { Print } from "./print.ts";
import { createYoagentReader } from "./readers.ts";
import { processRows } from "./rows.ts";
import { stats } from "./stats.ts";
import { currentWeather, weatherInUnits } from "./weather.ts";

/** Creates a conversation with a scripted model and the given tool calls. */
function createScene(tools: readonly Tool[], script: readonly ScriptedEntry[]): (print: Print) => Promise<void> {
  return async (print) => {
    const model = scriptedModel([...script, say("Finished.")]);
    const run = createAgent({ name: "example", model, tools }).run({ input: "Show me." });
    run.on(createYoagentReader(print));
    run.on((event) => {
      if (event.type !== "tool.completed" && event.type !== "tool.failed") return;
      for (const block of event.result.content) if (block.type === "text") print(`     ${block.text}\n`);
    });
    await run.result;
  };
}

const [name = "", folder = process.cwd()] = process.argv.slice(2);

const examples: Readonly<Record<string, (print: Print) => Promise<void>>> = {
  chat: runChatScene,
  research: runResearchScene,
  support: runSupportScene,
  review: (print) => runReviewScene(print, { root: folder }),
  invoice: runInvoiceScene,
  providers: runProvidersScene,
  analysis: createScene([analyse], [call(analyse, {})]),
  calculator: createScene(
    [calculator],
    [call(calculator, { expression: "(1 + 2) * 3" }), call(calculator, { expression: "1 +" })],
  ),
  deploy,
  items: createScene([processItems], [call(processItems, { items: ["one", "two", "three"] })]),
  rows: createScene([processRows], [call(processRows, { total: 250 })]),
  stats: createScene([stats], [call("stats", { numbers: [1, 2, "x"] }), call(stats, { numbers: [1, 2, 3, 4, 5] })]),
  weather: createScene(
    [currentWeather, weatherInUnits],
    [call(currentWeather, { city: "Paris" }), call(weatherInUnits, { location: "Oslo", units: "celsius" })],
  ),
};

const example = Object.hasOwn(examples, name) ? examples[name] : undefined;
if (example === undefined) {
  process.stderr.write(`Unknown example ${JSON.stringify(name)}. Use one of: ${Object.keys(examples).join(", ")}.\n`);
  process.exitCode = 1;
} else {
  await example((text) => {
    stdout.write(text);
  });
}
