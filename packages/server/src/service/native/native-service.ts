/** All acts of a caller: those of all protocols, and those that the native API has beside them. */
import type { CallerService } from "../caller-service.ts";
import type { ArtifactActs } from "./artifacts.ts";
import type { BulkActs } from "./bulk.ts";
import type { FileActs } from "./files.ts";
import type { MoveActs } from "./move-threads.ts";
import type { ScheduleActs } from "./schedules.ts";
import type { WaitActs } from "./watch-interrupts.ts";

/** All acts of a caller. */
export interface NativeService
  extends CallerService,
    ArtifactActs,
    FileActs,
    BulkActs,
    ScheduleActs,
    MoveActs,
    WaitActs {}
