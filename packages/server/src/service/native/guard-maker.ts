/** Rights of the caller who made a schedule, asked when a slot is due. */
import type { RunSchedule } from "@statewright/core";
import type { ScheduleGuard } from "@statewright/core/adapter";
import type { Caller } from "../../access/caller.ts";
import type { ServiceOptions } from "../service-options.ts";
import { createThreadPrefix } from "../thread-ids.ts";

/**
 * Creates the guard of the schedules that callers made: it refuses a slot when the maker has no access any more, has no
 * right to start the run, or when the columns of the schedule and the prefix of its id disagree. A schedule of the
 * program itself, without the prefix of a caller, is allowed.
 */
export function createMakerGuard(options: ServiceOptions): ScheduleGuard {
  const { authorize, schedules: { findMaker } = {}, scope = "tenant" } = options;
  return async (schedule) => {
    const { id, tenant, owner, graph } = schedule;
    if (!id.startsWith("t.") || tenant === undefined || owner === undefined) return undefined;
    const prefix = createThreadPrefix({ tenant, id: owner }, scope);
    if (!id.startsWith(prefix)) return "the schedule belongs to no caller of this server";
    const maker: Caller | undefined =
      findMaker === undefined ? { id: owner, tenant } : await findMaker({ id: owner, tenant });
    if (maker === undefined || maker.tenant !== tenant || maker.id !== owner)
      return "the caller who made the schedule has no access any more";
    const thread = toThread(schedule, prefix);
    const isAllowed = (await authorize?.(maker, { action: "run.start", graph, thread })) ?? true;
    return isAllowed ? undefined : "the caller who made the schedule may not start its runs any more";
  };
}

function toThread({ thread }: RunSchedule, prefix: string): string | undefined {
  return thread?.startsWith(prefix) === true ? thread.slice(prefix.length) : undefined;
}
