/** Records all tapes anew and writes the golden files of the LangGraph mapper: `node test/support/write-golden-tapes.ts`. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { formatTapeFile, getGoldenFile, getTapeFile, listTapeRuns } from "./golden-tapes.ts";
import { createTapeMemory, formatTape, mapTape, selectRun } from "./map-tape.ts";
import { recordTape, tapeNames } from "./record-tapes.ts";
import { formatV2Tape, getV2GoldenFile, mapV2Tape } from "./v2-tape.ts";

Error.stackTraceLimit = 0;
for (const name of tapeNames) {
  const tape = await recordTape(name);
  mkdirSync(dirname(getTapeFile(name)), { recursive: true });
  writeFileSync(getTapeFile(name), formatTapeFile(tape));
  const wire = listTapeRuns(tape).map((run) => formatTape(mapTape(selectRun(tape.events, run), createTapeMemory(run))));
  writeFileSync(getGoldenFile(name), wire.join(""));
  writeFileSync(getV2GoldenFile(name), formatV2Tape(mapV2Tape(tape.events)));
}
