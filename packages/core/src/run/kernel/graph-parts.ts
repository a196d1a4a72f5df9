/** The regions of the machine of a graph. */
import type { AnyEventObject } from "xstate";
import type { Json } from "../../base/json.ts";
import type { Snapshot, Step } from "./kernel.ts";

/** The machine of a graph, as independently moving regions. */
export interface GraphParts {
  /** Enters the machine. */
  enter(): Step;
  /** Applies an event; undefined when no region handles the event. */
  step(from: Snapshot, event: AnyEventObject): Step | undefined;
  /** Restores the snapshot with this `value`; undefined for a value that this graph version does not produce. */
  restore(value: Json): Snapshot | undefined;
}
