/** Acts that the native API has beside those of all protocols. */
import type { RouteCall } from "../http/route.ts";
import type { ArtifactActs } from "../service/artifacts.ts";
import type { BulkActs } from "../service/bulk.ts";
import type { CallerService } from "../service/caller-service.ts";
import type { FileActs } from "../service/files.ts";
import type { MoveActs } from "../service/move-threads.ts";
import type { ScheduleActs } from "../service/schedules.ts";
import type { WaitActs } from "../service/watch-interrupts.ts";

/** All acts of a caller of the native API. */
export interface NativeService
  extends CallerService,
    ArtifactActs,
    FileActs,
    BulkActs,
    ScheduleActs,
    MoveActs,
    WaitActs {}

/** Request of the native API. */
export interface NativeCall extends RouteCall {
  readonly service: NativeService;
}

/** Returns the request with all acts of the native API. Throws for a service without them. */
export function requireNativeCall(call: RouteCall): NativeCall {
  if (isNativeCall(call)) return call;
  throw new TypeError("the service of a native route: expected the acts of NativeService");
}

function isNativeCall(call: RouteCall): call is NativeCall {
  return "watchInterrupts" in call.service;
}
