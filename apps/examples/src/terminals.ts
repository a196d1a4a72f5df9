/** Three terminals on one file: a worker that runs an agent, a watcher of its words, and a desk that gives orders. */
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import {
  cancelRun,
  createAgent,
  engine,
  type Model,
  type RunEvent,
  schedule,
  schedules,
  sqliteStore,
  streamEvents,
  submit,
  userMessage,
} from "statewright";
import { listRuns, streamMessageText } from "statewright/inspect";
import { socketRelay } from "statewright/store";

const [role = "", argument = ""] = process.argv.slice(2);
const file = process.env["TERMINALS_FILE"] ?? "terminals.db";
const thread = "talk";
const store = sqliteStore(file);
const relay = socketRelay(file);
const reporter = createAgent({ name: "reporter", model: createSlowModel(createPause()) });

/** A model that says one word after each pause. */
function createSlowModel(pause: (signal: AbortSignal) => Promise<void>): Model {
  const text = "It rains in Oslo, and it will rain all day.";
  return {
    id: "slow-speaker",
    respond: async (_request, { delta, signal }) => {
      for (const word of text.split(/(?<= )/)) {
        await pause(signal);
        delta?.({ type: "text", text: word });
      }
      return { content: [{ type: "text", text }], finish: "stop" };
    },
  };
}

/** Waits for 400 ms; in a process with a parent, for a message of the parent per word. */
function createPause(): (signal: AbortSignal) => Promise<void> {
  if (process.send === undefined) return (signal) => sleep(400, undefined, { signal });
  let words = 0;
  let wake = (): void => undefined;
  process.on("message", () => {
    words += 1;
    wake();
  });
  return async (signal) => {
    while (words === 0)
      await new Promise<void>((resolve, reject) => {
        wake = resolve;
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    words -= 1;
  };
}

/** Serves all threads of the file until the process is stopped. */
async function work(): Promise<void> {
  const host = engine({ store, graphs: [reporter], relay });
  process.once("SIGTERM", () => void host.stop());
  await host.start();
  console.log("working");
}

/** Puts a question into the queue of the workers. */
async function ask(): Promise<void> {
  const { status } = await submit(reporter, { store, thread, input: { messages: [userMessage(argument)] } });
  console.log(status);
}

/** Prints the words of the thread as they come, until the given number of runs has ended. */
async function watch(): Promise<void> {
  const erase = (text: string): string => "\b \b".repeat(text.length);
  for await (const text of streamMessageText(followRuns(Number(argument || 1)), { formatRetracted: erase }))
    process.stdout.write(text);
  process.stdout.write("\n");
}

async function* followRuns(count: number): AsyncGenerator<RunEvent> {
  const reading = new AbortController();
  let ended = 0;
  for await (const event of streamEvents({ store, thread, relay, follow: reading.signal })) {
    yield event;
    if (event.type === "run.cancelled") process.stdout.write(`(cancelled: ${event.reason})\n`);
    else if (event.type === "run.completed") process.stdout.write("\n(done)");
    else continue;
    ended += 1;
    if (ended === count) return;
  }
}

/** Cancels the run that is at work, in whichever process it is. */
async function cancel(): Promise<void> {
  const { status } = await cancelRun(store, { thread, reason: argument || "enough" });
  console.log(status);
}

/** Plans a run for tomorrow, and one each morning. */
async function plan(): Promise<void> {
  const tomorrow = new Date(Date.now() + 24 * 3_600_000);
  const question = { messages: [userMessage("What is the weather today?")] };
  await submit(reporter, { store, thread: "tomorrow", input: question, at: tomorrow });
  await schedule(store, {
    ...{ id: "morning-report", graph: reporter, input: question },
    ...{ cron: "0 9 * * *", timeZone: "Europe/Oslo", threadPerFire: true },
  });
}

/** Lists the runs that wait for their time, and the schedules. */
async function list(): Promise<void> {
  const toTime = (at: number | undefined): string => (at === undefined ? "now" : new Date(at).toISOString());
  for (const { thread: id, startAt } of await listRuns(store, { status: "queued" }))
    console.log("run", id, toTime(startAt));
  for (const { id, status, cron, timeZone, nextAt } of await schedules.list(store))
    console.log("schedule", id, status, cron, timeZone, toTime(nextAt));
}

const roles: Readonly<Record<string, () => Promise<void>>> = { work, ask, watch, cancel, plan, list };
const play = Object.hasOwn(roles, role) ? roles[role] : undefined;
if (play === undefined) {
  process.stderr.write(`Unknown role ${JSON.stringify(role)}. Use one of: ${Object.keys(roles).join(", ")}.\n`);
  process.exitCode = 1;
} else await play();
