/** Maps a tape to the lines of a legacy stream, as a client with all modes would read it. */
import type { RunEvent } from "@statewright/core";
import type { LegacyEvent } from "../../src/langgraph/legacy/legacy-event.ts";
import { countEvent, createLegacyMemory, type LegacyMemory } from "../../src/langgraph/legacy/legacy-memory.ts";
import { mapLegacyEvent } from "../../src/langgraph/legacy/map-legacy-event.ts";

/** Wire event with its number. */
export interface NumberedEvent extends LegacyEvent {
  readonly seq: number;
  readonly n: number;
}

/** Creates the memory of a reader of a run. */
export function createTapeMemory(run: string, graph = "assistant"): LegacyMemory {
  return createLegacyMemory({ thread: "t1", run, graph, assistant: graph }, { hitl: true });
}

/** Maps the events of a tape, numbered as on the wire. */
export function mapTape(events: readonly RunEvent[], memory: LegacyMemory): readonly NumberedEvent[] {
  return events.flatMap((event) =>
    mapLegacyEvent(event, memory).map((wire) => {
      countEvent(memory, event.seq, wire);
      return { ...wire, seq: memory.seq, n: memory.n };
    }),
  );
}

/** Formats wire events, one on a line: number, mode, name, data. */
export function formatTape(wire: readonly NumberedEvent[]): string {
  return wire
    .map(
      ({ seq, n, mode = "always", event, namespace, data }) =>
        `${seq}.${n} [${mode}] ${event}${namespace} ${JSON.stringify(data)}\n`,
    )
    .join("");
}

/** Returns the events of a run of a tape: from its start to the start of another run. */
export function selectRun(events: readonly RunEvent[], run: string): readonly RunEvent[] {
  let current = "";
  return events.filter((event) => {
    if (event.type === "run.started" && event.within === undefined) current = event.run;
    return current === run;
  });
}
