/** Parts shared by stores of Statewright: encryption of values, checksums, the hash chain, rows and their columns. */

export {
  createStoreCipher,
  decryptPayload,
  type Encryption,
  type EncryptionKey,
  encryptionBytes,
  type ItemCipher,
  type Payload,
  type StoreCipher,
  type ThreadCipher,
  type ValueContext,
} from "./cipher.ts";
export { computeColumnSum, computeFoldedSum } from "./column-sums.ts";
export { corruptAdvice, createCorruptError, getCorruptFact } from "./corrupt-error.ts";
export {
  type DeltaLocation,
  type EffectPayload,
  type InterruptPayload,
  type RunPayload,
  readDelta,
  readEffect,
  readEvent,
  readInboxMessage,
  readInterrupt,
  readRun,
  toControlContext,
  toDeltaColumns,
  toEffectPayload,
  toEventColumns,
  toInboxMessageColumns,
  toInterruptPayload,
  toRunPayload,
} from "./encrypted-rows.ts";
export {
  type CheckpointLocation,
  type FoldedColumns,
  isFoldable,
  nothingFolded,
  readFoldedEffects,
  toFoldedColumns,
} from "./folded-effects.ts";
export { hashRemainingDeltas } from "./hash-remaining-deltas.ts";
export { type OutboxColumns, type OutboxPayload, readOutboxRow, toOutboxPayload } from "./outbox-rows.ts";
export { isUnreadable, listReadableRows, type ReadableList } from "./readable-rows.ts";
export { type RequestColumns, readRequest, toRequestColumns } from "./request-rows.ts";
export { type RotatedItems, type Rotation, rotateAll, rotateItems, rotateThread, type Write } from "./rotation.ts";
export { createRowSource, type EncryptableRow, type RowSource } from "./row-source.ts";
export {
  type CheckpointChain,
  type CheckpointColumns,
  computeDeltaSum,
  computeEffectSum,
  computeEventSum,
  computeInboxMessageSum,
  computeInterruptSum,
  computeOutlineSum,
  computeTimerSum,
  type DeltaColumns,
  type EffectColumns,
  type EventColumns,
  type GraphVersion,
  hashCheckpoint,
  type InboxMessageColumns,
  type InterruptColumns,
  type OpenInterruptColumns,
  type RunColumns,
  type ThreadColumns,
  type TimerColumns,
  toAttemptLogText,
  toCheckpointRow,
  toDeltaRow,
  toEffectRow,
  toInterruptExtrasText,
  toInterruptRow,
  toOpenInterruptRow,
  toRunExtrasText,
  toRunRow,
  toThreadRow,
  toTimerRow,
} from "./rows.ts";
export { fromStoredStatus, type StoredStatus, statusFromRow, toStoredStatus, toStoredStatuses } from "./run-status.ts";
export { type DetailColumns, type DetailPayload, readDetails, toDetailPayload } from "./thread-details.ts";
export { toUsageText } from "./usage-columns.ts";
export { type Read, type StoreVerifier, verifyStore } from "./verify-store.ts";
export { checkWellFormed, isWellFormed } from "./well-formed.ts";
