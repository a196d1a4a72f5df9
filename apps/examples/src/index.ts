/** `npm run example -- <name>`: run one example and watch its events, offline. */
import { stdout } from "node:process";
import { call, type ScriptedEntry, say, scriptedModel } from "@statewright/testing";
import { createAgent, type Tool } from "statewright";
import { chatScene, invoiceScene, providersScene, researchScene, reviewScene, supportScene } from "./agents/scenes.ts";
import { analyse } from "./analysis.ts";
import { calculator } from "./calculator.ts";
import { deploy } from "./deploy.ts";
import { processItems } from "./items.ts";
import type { Print } from "./print.ts";
import { yoagentReader } from "./readers.ts";
import { processRows } from "./rows.ts";
import { stats } from "./stats.ts";
import { currentWeather, weatherInUnits } from "./weather.ts";

/** A conversation in which a scripted model makes these calls. */
function scene(tools: readonly Tool[], script: readonly ScriptedEntry[]): (print: Print) => Promise<void> {
  return async (print) => {
    const model = scriptedModel([...script, say("That was it.")]);
    const run = createAgent({ name: "example", model, tools }).run({ input: "Show me." });
    run.on(yoagentReader(print));
    run.on((event) => {
      if (event.type !== "tool.completed" && event.type !== "tool.failed") return;
      for (const block of event.result.content) if (block.type === "text") print(`     ${block.text}\n`);
    });
    await run.result;
  };
}

const [name = "", folder = process.cwd()] = process.argv.slice(2);

const examples: Readonly<Record<string, (print: Print) => Promise<void>>> = {
  chat: chatScene,
  research: researchScene,
  support: supportScene,
  review: (print) => reviewScene(print, { root: folder }),
  invoice: invoiceScene,
  providers: providersScene,
  analysis: scene([analyse], [call("analyse", {})]),
  calculator: scene(
    [calculator],
    [call("calculator", { expression: "(1 + 2) * 3" }), call("calculator", { expression: "1 +" })],
  ),
  deploy,
  items: scene([processItems], [call("process_items", { items: ["one", "two", "three"] })]),
  rows: scene([processRows], [call("process_rows", { total: 250 })]),
  stats: scene([stats], [call("stats", { numbers: [1, 2, "x"] }), call("stats", { numbers: [1, 2, 3, 4, 5] })]),
  weather: scene(
    [currentWeather, weatherInUnits],
    [call("get_weather", { city: "Paris" }), call("weather_in_units", { location: "Oslo", units: "celsius" })],
  ),
};

const example = Object.hasOwn(examples, name) ? examples[name] : undefined;
if (example === undefined) {
  process.stderr.write(`There is no example ${JSON.stringify(name)}. One of: ${Object.keys(examples).join(", ")}.\n`);
  process.exitCode = 1;
} else {
  await example((text) => {
    stdout.write(text);
  });
}
