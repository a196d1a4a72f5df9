/** Records what the streams of a protocol read of their threads, for golden files: one line of JSON for each stream. */
import { appendFileSync } from "node:fs";
import type { Protocol, RouteCall, ThreadFrame } from "@statewright/server";

/** Returns the protocol with a recorder around the acts that its streams read with. */
export function recordTapes(protocol: Protocol, file: string): Protocol {
  const routes = protocol.routes.map((route) => ({
    ...route,
    handle: (call: RouteCall) => route.handle({ ...call, service: recordService(call.service, file) }),
  }));
  return { ...protocol, routes };
}

type Service = RouteCall["service"];

function recordService(service: Service, file: string): Service {
  const tape = { from: 0, run: "", events: [] as ThreadFrame[], answered: {} as Record<string, unknown>, status: {} };
  const keepStart = <Started extends { readonly run: { readonly id: string }; readonly after: number }>(
    started: Started,
    from: number,
  ): Started => {
    Object.assign(tape, { run: started.run.id, from });
    return started;
  };
  return {
    ...service,
    startRun: async (thread, request) => keepStart(await service.startRun(thread, request), 0),
    resumeRun: async (thread, request) => keepStart(await service.resumeRun(thread, request), 0),
    answer: async (thread, request) => {
      const started = await service.answer(thread, request);
      return keepStart(started, started.after);
    },
    getState: async (thread, place) => {
      const state = await service.getState(thread, place);
      if (place?.at !== undefined) tape.answered[place.at] = state.answered;
      return state;
    },
    getRun: async (run) => {
      const row = await service.getRun(run);
      tape.status = { status: row.status, error: row.error };
      return row;
    },
    streamEvents: async (thread, request) => {
      const events = await service.streamEvents(thread, request);
      const isMessage = typeof request.end === "object";
      if (typeof request.end === "object") tape.run = request.end.run;
      return isMessage ? keepEvents(events, request.signal) : events;
    },
  };

  async function* keepEvents(
    events: AsyncIterable<ThreadFrame>,
    signal: AbortSignal,
  ): AsyncGenerator<ThreadFrame, undefined, undefined> {
    try {
      for await (const event of events) {
        tape.events.push(event);
        yield event;
      }
    } finally {
      if (!signal.aborted) appendFileSync(file, `${JSON.stringify(tape)}\n`);
    }
    return undefined;
  }
}
