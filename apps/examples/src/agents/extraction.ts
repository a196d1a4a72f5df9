/** Extraction: converts a text to typed data. Validation errors go back to the model. */
import { type AnyModel, createAgent } from "statewright";
import * as z from "zod";

/** Invoice. The sum of its lines must equal its total. */
export const Invoice = z
  .object({
    number: z.string(),
    date: z.iso.date(),
    currency: z.enum(["EUR", "USD", "GBP"]),
    lines: z.array(z.object({ text: z.string(), cents: z.int() })).min(1),
    totalCents: z.int(),
  })
  .refine(({ lines, totalCents }) => lines.reduce((sum, { cents }) => sum + cents, 0) === totalCents, {
    path: ["totalCents"],
    message: "must equal the sum of the lines",
  });

/** Creates an agent that reads invoices. Fails with all validation errors after three attempts. */
export function createInvoiceReader(model: AnyModel) {
  return createAgent({
    name: "invoices",
    model,
    instructions: "Read the invoice. Amounts are in cents.",
    settings: { temperature: 0 },
    output: { schema: Invoice, name: "invoice", repairs: 2 },
  });
}

/** Reads one invoice, as text or as a PNG scan. */
export async function readInvoice(model: AnyModel, page: string | Uint8Array): Promise<z.infer<typeof Invoice>> {
  const input =
    typeof page === "string"
      ? page
      : { text: "The invoice is in the image.", files: [{ data: page, mimeType: "image/png" }] };
  const { status, output } = await createInvoiceReader(model).run({ input }).result;
  if (status !== "done" || output === undefined)
    throw new Error(`readInvoice: expected a finished run, got status ${status}`);
  return output;
}
