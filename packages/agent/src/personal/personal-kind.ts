/** Kinds of personal data, and matches in a text. */

/** Kind of personal data. */
export type PersonalKind = "email" | "card" | "iban" | "phone" | "ip";

/** All kinds, in order of precedence for overlapping matches. */
export const personalKinds: readonly PersonalKind[] = ["email", "iban", "card", "ip", "phone"];

/** Match in a text. */
export interface PersonalMatch<Kind extends string = PersonalKind> {
  readonly kind: Kind;
  readonly start: number;
  readonly end: number;
}
