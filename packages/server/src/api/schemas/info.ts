/** Schema of the server itself. */
import * as z from "zod";
import { nameSchema } from "./common.ts";

/** Server: its version, protocols, limits and role. */
export interface WireInfo {
  readonly name: string;
  readonly version: string;
  readonly role: "serve" | "readOnly";
  readonly protocols: readonly { readonly name: string; readonly path: string }[];
  readonly limits: Readonly<Record<string, number>>;
}

/** Server: its version, protocols, limits and role. */
export const info: z.ZodType<WireInfo> = nameSchema(
  "Info",
  z.strictObject({
    name: z.string(),
    version: z.string(),
    role: z.enum(["serve", "readOnly"]),
    protocols: z.array(z.strictObject({ name: z.string(), path: z.string() })),
    limits: z.record(z.string(), z.number()).describe("Limits by name, in bytes, milliseconds or pieces"),
  }),
);
