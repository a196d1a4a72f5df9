import process from "node:process";
import { defineGraph, defineState, END, engine, START, schedule, schedules, sqliteStore, submit } from "statewright";
import { listRuns } from "statewright/inspect";
import * as z from "zod";

const Report = defineState({ topic: z.string(), text: z.string().default("") });
const reports = defineGraph({ name: "reports", version: 1, state: Report })
  .nodes({
    write: ({ topic }) => {
      console.log(`A report on ${topic}`);
      return { text: `All about ${topic}` };
    },
  })
  .edges({ [START]: "write", write: END });

const [role = "work"] = process.argv.slice(2);
const store = sqliteStore("reports.db");

/** Plans a report for each morning, one for tomorrow, and one for the moment when the user has stopped typing. */
async function plan(): Promise<void> {
  await schedule(store, {
    id: "morning-report",
    graph: reports,
    cron: "0 9 * * 1-5",
    timeZone: "Europe/Berlin",
    threadPerFire: true,
    input: { topic: "sales" },
  });
  const tomorrow = new Date(Date.now() + 86_400_000);
  await submit(reports, { store, thread: "stock", key: "stock", input: { topic: "stock" }, at: tomorrow });
  for (const topic of ["v", "vis", "visitors"])
    await submit(reports, { store, input: { topic }, debounce: { key: "search", ms: 500 } });
}

/** Prints what is planned. */
async function list(): Promise<void> {
  for (const { id, status, nextAt } of await schedules.list(store)) console.log(id, status, toText(nextAt));
  for (const { thread, status, startAt } of await listRuns(store, { status: "queued" }))
    console.log(thread, status, toText(startAt));
}

const toText = (at: number | undefined): string => (at === undefined ? "now" : new Date(at).toISOString());

/** Serves the store until a report is written. */
async function work(): Promise<void> {
  const host = engine({
    store,
    graphs: [reports],
    onRun: (run) => run.on(({ type }) => type === "run.completed" && void host.stop()),
  });
  await host.start();
}

if (role === "plan") await plan();
else if (role === "list") await list();
else await work();
