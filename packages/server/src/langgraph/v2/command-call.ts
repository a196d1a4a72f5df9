/** Command of a client, and its parameters. */
import type * as z from "zod";
import { toPointer } from "../../http/to-problem.ts";
import type { CallerService } from "../../service/caller-service.ts";
import { CommandError, type CommandResult } from "./command-reply.ts";

/** Command of a client about a thread. */
export interface CommandCall {
  readonly service: CallerService;
  readonly thread: string;
  readonly id: number;
  readonly params: unknown;
  readonly hitl: boolean;
}

/** Acts of a command. */
export type CommandHandler = (call: CommandCall) => Promise<CommandResult>;

/** Checks the parameters of a command. Throws `invalid_argument` with the place of the first that does not fit. */
export function readParams<Value>({ params }: CommandCall, schema: z.ZodType<Value>): Value {
  const parsed = schema.safeParse(params ?? {});
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const pointer = `/params${toPointer(issue?.path ?? [])}`;
  throw new CommandError("invalid_argument", `${pointer}: ${issue?.message ?? "invalid parameters"}.`);
}
