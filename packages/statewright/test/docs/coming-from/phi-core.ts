import { readFile } from "node:fs/promises";
import { call, say, scriptedModel, virtualClock } from "@statewright/testing";
import {
  createAgent,
  defineContext,
  defineTool,
  getMessageText,
  inject,
  ToolError,
  type ToolRuntime,
} from "statewright";
import { getBlockText, yoagentDialect } from "statewright/adapter";
import * as z from "zod";

// a tool
const sumLines = defineTool({
  name: "sum_lines",
  label: "Sum of Lines",
  description: "Add up the numbers of a file, one a line.",
  input: z.object({
    path: z.string({ error: "missing path" }).describe("Path of the file"),
  }),
  effect: "pure",
  safety: { access: "read", filesystem: "read" },
  run: async ({ path }, { signal, update }) => {
    const lines = (await readText(path)).trim().split("\n");
    let sum = 0;
    for (const [index, line] of lines.entries()) {
      if (signal.aborted) throw ToolError.cancelled();
      sum += Number(line);
      if (index % 2 === 0)
        update?.({
          content: `${index + 1} of ${lines.length} lines`,
          details: { progress: (index + 1) / lines.length },
        });
    }
    return { content: `The sum is ${sum}`, value: sum };
  },
});

// errors
async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    const code = (cause as { readonly code?: string }).code ?? "unknown";
    throw ToolError.failed(`Cannot read ${path}: ${code}`, { cause });
  }
}

// progress
const closeDay = defineTool({
  name: "close_day",
  description: "Close the books of a day and send the report.",
  input: z.object({ day: z.string().describe("The day") }),
  effect: "idempotent",
  run: async ({ day }, runtime) => {
    runtime.progress("Closing the books");
    await send(day, { ...runtime });
    return `Closed ${day}`;
  },
});

/** A helper that uses a copy of the runtime of the same call. */
async function send(day: string, { progress, wait }: Pick<ToolRuntime, "progress" | "wait">): Promise<void> {
  await wait(1_000);
  progress(`Sending the report of ${day}`);
}

// hidden arguments
const Office = defineContext({ branch: z.string() });

const whoAmI = defineTool({
  name: "which_branch",
  description: "Name the branch whose books these are.",
  input: z.object({}),
  inject: { branch: Office.from(({ branch }) => branch), key: inject.secret("BOOKS_KEY") },
  effect: "pure",
  run: (_args, { injected }) => `${injected.branch}, with a key: ${injected.key}`,
});

const model = scriptedModel([
  [call(sumLines, { path: "money.txt" }), call(closeDay, { day: "Monday" }), call(whoAmI, {})],
  call(sumLines, { path: "gone.txt" }),
  say("All books are closed."),
  say("Nothing to add."),
]);

// agents
const settings = { model, tools: [sumLines, closeDay, whoAmI], context: Office };
const agents = {
  books: createAgent({ ...settings, name: "books", strategy: { batch: 2 } }),
  audit: createAgent({ ...settings, name: "audit", instructions: "You read, and change nothing." }),
};

const world = virtualClock();
const secrets = { get: async () => "k-123" };
const run = agents.books.run({ world, input: "Close Monday.", context: { branch: "Oslo" }, secrets });

// events
const translate = yoagentDialect();
run.on((event) => {
  for (const moment of translate(event)) {
    if (moment.type === "ToolExecutionUpdate")
      console.log(`${moment.toolName}: ${moment.partialResult.content.map(getBlockText).join("")}`);
    else if (moment.type === "ProgressMessage") console.log(`${moment.toolName}: (${moment.text})`);
    else if (moment.type === "ToolExecutionEnd")
      console.log(`${moment.toolName} ${moment.isError ? "failed" : "ended"}`);
    else if (moment.type === "MessageUpdate") console.log(`says: ${moment.delta}`);
  }
});
await world.advance(1_000);
const { state } = await run.result;
for (const message of state.messages)
  if (message.role === "tool") console.log(`model reads: ${getMessageText(message)}`);

const second = agents.audit.run({ world, input: "Anything else?", context: { branch: "Rome" }, secrets });
for (const message of (await second.result).state.messages.slice(-1)) console.log(getMessageText(message));
