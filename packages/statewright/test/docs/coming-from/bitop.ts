import { loadPlugin } from "@statewright/plugins";
import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, getMessageText, toolRegistry } from "statewright";
import { bitopDialect, getBlockText } from "statewright/adapter";
import * as z from "zod";

// a tool
const mean = defineTool({
  name: "mean",
  description: "Mean of a list of numbers.",
  input: z.object({
    numbers: z.array(z.number()).min(1, {
      error: "numbers must be a non-empty array",
    }),
    unit: z.enum(["kg", "lb"]).optional(),
  }),
  effect: "pure",
  run: ({ numbers, unit = "kg" }) => {
    const sum = numbers.reduce((all, each) => all + each, 0);
    return {
      content: `${sum / numbers.length} ${unit}`,
      details: { n: numbers.length },
    };
  },
});

// live objects, updates, errors
class Scales {
  readonly #weights: ReadonlyMap<string, number>;
  constructor(weights: Readonly<Record<string, number>>) {
    this.#weights = new Map(Object.entries(weights));
  }
  /** Weighs items in sequence. */
  tool() {
    return defineTool({
      name: "weigh",
      description: "Weigh things, one after the other.",
      input: z.object({ things: z.array(z.string()) }),
      run: ({ things }, { update }) => {
        const found: string[] = [];
        for (const [index, thing] of things.entries()) {
          update?.({ content: `[${index + 1}/${things.length}] ${thing}` });
          const weight = this.#weights.get(thing);
          if (weight === undefined) return new Error(`thing not found: ${thing}`);
          found.push(`${thing}: ${weight} kg`);
        }
        return found.join("\n");
      },
    });
  }
}

// a plugin, unchanged
const plugin = await loadPlugin({
  command: process.execPath,
  args: ["stars-plugin.mjs"],
  timeoutMs: 30_000,
});

// a registry, an agent
const tools = toolRegistry([mean, new Scales({ apple: 0.2 }).tool()]);
for (const tool of plugin.tools) tools.register(tool);

const model = scriptedModel([
  [
    call("weigh", { things: ["apple", "pear"] }),
    call(mean, { numbers: [] }),
    call(mean, { numbers: [1, 2], unit: "lb" }),
    call("stars", { count: 3 }),
    call("stars", { count: 12 }),
  ],
  say("Done."),
]);
const agent = createAgent({
  name: "scales",
  model,
  tools,
  strategy: "sequential",
});

// events
const run = agent.run({ input: "Weigh the fruit." });
const translate = bitopDialect();
run.on((event) => {
  for (const moment of translate(event)) {
    if (moment.type === "tool_start") console.log(`start ${moment.tool}`);
    else if (moment.type === "tool_update") console.log(`  ${moment.partial.content.map(getBlockText).join("")}`);
    else if (moment.type === "tool_denied" || moment.type === "tool_end")
      console.log(
        `${moment.isError ? "failed" : "end"} ${moment.tool} ${JSON.stringify(moment.result.details ?? null)}`,
      );
  }
});
const { state } = await run.result;
for (const message of state.messages)
  if (message.role === "tool") console.log(`model reads: ${getMessageText(message)}`);
await plugin.close();
