/**
 * Server process with the graph of a tape, on a SQLite file. Appends the events of its runs and the events that its
 * streams read to two files, and prints its URL: `node tape-server.ts <graph> <folder> <name> <token> <port> <streams>`. The
 * engine starts when the client has opened that many streams, so that a client of a process after a crash sees every event.
 */
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { engine, type RunEvent } from "@statewright/core";
import { sqliteStore } from "@statewright/sqlite";
import type { RouteCall } from "../../src/http/route.ts";
import { type Protocol, serve, type ThreadFrame } from "../../src/index.ts";
import { langgraph } from "../../src/langgraph.ts";
import { findFailureTitle } from "../../src/service/failure-titles.ts";
import { createTapeGraph } from "./tape-graphs.ts";

const [graph = "", folder = "", name = "", token = "", port = "0", streams = "0"] = process.argv.slice(2);

function append(kind: "tape" | "events", event: object): void {
  appendFileSync(join(folder, `${name}.${kind}.jsonl`), `${JSON.stringify(event)}\n`);
}

/** Event of a run as callers see it: with the id of the thread that they know, and the title of a failure. */
function toShownEvent(event: RunEvent): RunEvent {
  if (event.type === "run.started") return { ...event, thread: "t1" };
  if (event.type !== "run.failed" && event.type !== "task.failed" && event.type !== "model.retried") return event;
  const { code = "internal" } = event.error;
  return { ...event, error: { name: "StatewrightError", message: findFailureTitle(code) ?? code, code } };
}

/** Wraps a protocol, so that the events of its streams are recorded as they are read. */
function recordEvents(protocol: Protocol): Protocol {
  const routes = protocol.routes.map((route) => ({
    ...route,
    handle: (call: RouteCall) => {
      const { service } = call;
      const streamEvents: typeof service.streamEvents = async (thread, request) =>
        keepEvents(await service.streamEvents(thread, request));
      return route.handle({ ...call, service: { ...service, streamEvents } });
    },
  }));
  return { ...protocol, routes };
}

let openedStreams = 0;
let notifyStreams: (() => void) | undefined;
const streamsOpened = new Promise<void>((resolve) => {
  notifyStreams = resolve;
});

async function* keepEvents(events: AsyncIterable<ThreadFrame>): AsyncGenerator<ThreadFrame, undefined, undefined> {
  openedStreams += 1;
  if (openedStreams === Number(streams)) notifyStreams?.();
  for await (const event of events) {
    append("events", event);
    yield event;
  }
  return undefined;
}

const host = engine({
  store: sqliteStore(join(folder, `${name}.db`)),
  graphs: [createTapeGraph(graph)],
  onRun: (run) => void run.on((event) => append("tape", toShownEvent(event))),
});
const server = serve({ engine: host, access: { token }, protocols: [recordEvents(langgraph())] });
const { url } = await server.listen({ port: Number(port) });
if (streams === "0") await host.start();
console.log(url);
if (streams !== "0") {
  await streamsOpened;
  await host.start();
}
