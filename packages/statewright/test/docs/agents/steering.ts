import { realpath } from "node:fs/promises";
import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, getMessageText, memoryStore, steer } from "statewright";
import * as z from "zod";

const files = new Map([["notes.txt", "one"]]);

const edit = defineTool({
  name: "edit_file",
  description: "Put a line at the end of a file.",
  input: z.object({ path: z.string(), line: z.string() }),
  effect: "idempotent",
  execution: { lock: async ({ path }) => [await realpath(path).catch(() => path)] },
  run: async ({ path, line }) => {
    const before = files.get(path) ?? "";
    await aMoment();
    files.set(path, `${before} ${line}`);
    return "done";
  },
});

const build = defineTool({
  name: "wait_for_build",
  description: "Wait until the build has ended.",
  input: z.object({}),
  effect: "pure",
  run: async (_args, { steered, progress }) => {
    progress("Waiting for the build");
    return (await until(steered, 60_000)) ? "The build is still running." : "The build has ended.";
  },
});

const submit = defineTool({
  name: "hand_in",
  description: "Hand in what was done so far.",
  input: z.object({}),
  execution: { mode: "sequential", onSteer: "run" },
  run: () => "handed in",
});

const store = memoryStore();
const model = scriptedModel([
  [call(edit, { path: "notes.txt", line: "two" }), call(edit, { path: "notes.txt", line: "three" })],
  [
    call(build, {}),
    call(edit, { path: "notes.txt", line: "four" }),
    call(edit, { path: "notes.txt", line: "five" }),
    call(submit, {}),
  ],
  say("I have handed in what there is."),
  say("You are welcome."),
]);

const worker = createAgent({
  name: "worker",
  model,
  tools: [edit, build, submit],
  strategy: { batch: 2 },
  maxToolCalls: 10,
  store,
});

const run = worker.run({ thread: "t1", input: "Write three lines, wait for the build, then hand in." });
await run.followUp("Thank you.");
run.on((event) => {
  if (event.type === "tool.progress") void run.steer("It is late: hand in what you have.");
  if (event.type === "inbox.delivered") console.log(`(${event.kind}: ${event.messages.map(getMessageText).join()})`);
});
const { state } = await run.result;
for (const message of state.messages) console.log(`${message.role}: ${getMessageText(message) || "(calls)"}`);
console.log(files.get("notes.txt"));

await steer(worker, { store, thread: "t1", input: "Use the metric system from now on." });
console.log((await store.inbox("t1", "main")).length, "waits for the next run");

function aMoment(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Waits until the time is over or the signal fires; resolves to true if the signal fired. */
function until(signal: AbortSignal, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    const end = (): void => {
      clearTimeout(timer);
      resolve(true);
    };
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}
