"""The one catalogue of sentences that people read when something is refused: what happened, why, what to do next.

Pure. Every code of `claims.refusals` has an entry, and every fact it carries is said. docs/dev/messages.md lists them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from claims.refusals import Code, Refusal


@dataclass(frozen=True, slots=True)
class Sentences:
    """The three parts of a message, with {facts} to be filled in."""

    what: str
    why: str
    next: str

    def filled(self, facts: Mapping[str, str]) -> Sentences:
        """The same with every fact in its place. Facts are never read as formats themselves."""
        return Sentences(*(part.format_map(facts) for part in (self.what, self.why, self.next)))

    def __str__(self) -> str:
        return f"{self.what} {self.why} {self.next}"


CATALOGUE: Mapping[Code, Sentences] = {
    Code.FIELD_MISSING: Sentences(
        "{label} is missing.", "The files can't be written without it.", "Fill it in, such as {example}."
    ),
    Code.NAME_SHAPE: Sentences(
        "“{value}” can't be the name.",
        "A name has 1 to {most} of the characters a-z, 0-9 and -, and starts and ends with a letter or digit.",
        "Write one such as {example}.",
    ),
    Code.NAMESPACE_FOREIGN: Sentences(
        "You can't ask for GPUs in “{value}”.",
        "None of your teams works in a namespace of that name.",
        "Choose one of the namespaces offered, or ask your team's lead for access.",
    ),
    Code.CLASS_UNKNOWN: Sentences(
        "“{value}” can't be asked for.",
        "The cluster has no GPU class of that name.",
        "Choose one of the classes offered.",
    ),
    Code.COUNT_BOUNDS: Sentences(
        "“{value}” can't be the count.",
        "One resource claim takes {least} to {most} devices, in whole numbers.",
        "Write a number from {least} to {most}; for more, let more pods use the template.",
    ),
    Code.SHARE_BOUNDS: Sentences(
        "“{value}” can't be the share.",
        "A share is {least} to {most} percent of a device, in steps of {step}.",
        "Write a multiple of {step} from {least} to {most}; {most} is the whole device.",
    ),
    Code.SHARE_OF_MANY: Sentences(
        "{share} % of each of {count} devices can't be used.",
        "A process talks to one MPS daemon only, so it can't use shares of two devices.",
        "Ask for one device, or for {count} whole ones.",
    ),
    Code.MEMORY_SHAPE: Sentences(
        "“{value}” is no amount of memory.",
        "It is written as a Kubernetes quantity: a number, then Mi, Gi or Ti.",
        "Write it such as 40Gi, or leave it empty.",
    ),
    Code.MEMORY_BOUNDS: Sentences(
        "“{value}” can't be the memory.",
        "Memory per device goes from {least} to {most}; a number without a unit means bytes.",
        "Write it with its unit, such as 40Gi, or leave it empty.",
    ),
    Code.MEMORY_OVER_SHARE: Sentences(
        "{memory} don't fit in {share} % of a device.",
        "No device seen for this class has more than {total}, and {share} % of that are {part}.",
        "Ask for a share of {enough} %, or for at most {part}.",
    ),
    Code.MEMORY_OVER_DEVICE: Sentences(
        "{memory} don't fit in a share.",
        "No device seen for this class has more than {total} in all.",
        "Ask for less memory, or for another class.",
    ),
    Code.STRATEGY_UNKNOWN: Sentences(
        "“{value}” is no way of sharing.", "The node driver knows {known}.", "Choose one of them, or none."
    ),
    Code.STRATEGY_NO_DRIVER: Sentences(
        "MPS can't be set for {device_class}.",
        "Its driver is not known yet: the class names none, and no device or more than one driver has been seen.",
        "Leave sharing empty, or choose a class whose selector names its driver.",
    ),
    Code.CHOICE_UNKNOWN: Sentences(
        "{label}: “{value}” can't be chosen.", "The choices are {known}.", "Choose one of them, or none."
    ),
    Code.NUMBER_BOUNDS: Sentences(
        "{label}: “{value}” is out of bounds.",
        "It is a whole number from {least} to {most}.",
        "Write one from {least} to {most}.",
    ),
    Code.TEXT_SHAPE: Sentences("{label}: “{value}” can't be used.", "It is {rule}.", "Write one such as {example}."),
    Code.DAY_SHAPE: Sentences(
        "{label}: “{value}” is no day.",
        "A day is written as year, month and day.",
        "Write it such as 2027-01-31, or leave it empty.",
    ),
    Code.DAY_PAST: Sentences(
        "{label}: {value} is over.", "It is {today} today.", "Write a day that is to come, or leave it empty."
    ),
    Code.PROFILE_SHAPE: Sentences(
        "“{value}” is no slice profile.",
        "A profile names its compute slices and its memory.",
        "Choose one of the profiles offered, such as 1g.10gb.",
    ),
    Code.CONFIG_FOREIGN: Sentences(
        "{label}: {value} can't be set for these devices.",
        "Their driver {driver} takes no GpuConfig of the kind that the files carry.",
        "Leave it empty; what the class itself sets holds.",
    ),
    Code.INTERVAL_MODE: Sentences(
        "A time slice “{value}” can't be set here.",
        "Only a device that is shared in time has time slices.",
        "Leave it empty, or ask for a device that is shared in time.",
    ),
    Code.SCALE_ORDER: Sentences(
        "{least} to {most} replicas can't be.",
        "The least number is above the most.",
        "Exchange the two, or leave both empty.",
    ),
    Code.ENTRIES_MANY: Sentences(
        "{label}: this is one too many.", "At most {most} can be given.", "Leave the last ones out."
    ),
    Code.CEL_LONG: Sentences(
        "The selector “{value}” is too long.",
        "Kubernetes takes at most {most} bytes.",
        "Shorten it, or split it in two: all selectors must hold.",
    ),
    Code.CEL_WRONG: Sentences(
        "The selector “{value}” can't be compiled.",
        "The compiler says: “{reason}”",
        "Correct it; it must be a CEL expression that is true or false.",
    ),
    Code.CEL_COST: Sentences(
        "The selector “{value}” may cost too much.",
        "Kubernetes estimates up to {cost} for it and takes at most {most}.",
        "Compare with == or startsWith instead of matches, or leave out loops.",
    ),
    Code.STYLE_UNSAYABLE: Sentences(
        "{label} can't be said by an extended resource.",
        "It names a class and a count of whole devices only.",
        "Leave it out, or choose the style with claims.",
    ),
    Code.STYLE_NO_NAME: Sentences(
        "{device_class} can't be asked for by an extended resource.",
        "The class carries no resource name, and its own name has more than {most} characters.",
        "Choose the style with claims, or another class.",
    ),
    Code.CLASS_FOREIGN: Sentences(
        "{gpu_class} can't be asked for in “{namespace}”.",
        "The class is for some namespaces only, and that is none of them.",
        "Choose another class or another namespace, or ask an administrator to open it.",
    ),
    Code.CLASS_PAUSED: Sentences(
        "{gpu_class} is paused.",
        "An administrator says: “{message}”",
        "Choose another class, or wait until it is open.",
    ),
    Code.CLASS_REPLACED: Sentences(
        "{gpu_class} can't be asked for any more.", "{other} has taken its place.", "Choose {other}."
    ),
    Code.CLASS_FAULT: Sentences(
        "{gpu_class} can't be served.",
        "Kubernetes would place no pod that asks for it: {fault}.",
        "Choose another class, and show this to an administrator.",
    ),
    Code.COUNT_CLASS: Sentences(
        "{value} devices of {gpu_class} are out of its bounds.",
        "One request takes {least} to {most} of them.",
        "Write a number from {least} to {most}, or choose another class.",
    ),
    Code.SHARE_CLASS: Sentences(
        "{value} % of a device of {gpu_class} is out of its bounds.",
        "A share of it is {least} to {most} percent, in steps of {step}.",
        "Write a multiple of {step} from {least} to {most}, or choose another class.",
    ),
    Code.MEMORY_CLASS: Sentences(
        "{value} of memory is out of the bounds of {gpu_class}.",
        "It takes {bounds} for each device.",
        "Write another amount, or choose another class.",
    ),
    Code.MODE_OTHER: Sentences(
        "{gpu_class} is not given like this.", "It is for {offered} only.", "Choose that, or another class."
    ),
    Code.MODE_NO_SLICES: Sentences(
        "{gpu_class} has no slices.",
        "No device of this class is a slice of a card (MIG).",
        "Choose another mode, or a class that has slices.",
    ),
    Code.MODE_NO_SHARES: Sentences(
        "{gpu_class} can't be shared in percent.",
        "No device of this class publishes {capacity}.",
        "Choose another mode, or a class whose devices do.",
    ),
    Code.MODE_NO_SLOTS: Sentences(
        "{gpu_class} is not shared in time.",
        "No device of this class publishes slots.",
        "Choose another mode, or a class whose devices do.",
    ),
    Code.PROFILE_ABSENT: Sentences(
        "{gpu_class} has no slices of the profile {value}.",
        "Its devices have {known}.",
        "Choose one of these profiles, or another class.",
    ),
    Code.STYLE_PART: Sentences(
        "{gpu_class} can't be asked for by an extended resource.",
        "It is a part of {device_class}, and an extended resource stands for the whole of that.",
        "Choose the style with claims, or the class {device_class}.",
    ),
    Code.PASTED_SIZE: Sentences(
        "The manifest has {size} bytes.", "At most {most} are read.", "Paste one workload only."
    ),
    Code.PASTED_YAML: Sentences(
        "The manifest can't be read.", "Line {line}: {reason}.", "Correct the line, and paste it once more."
    ),
    Code.PASTED_DOCUMENTS: Sentences(
        "The manifest holds more than one document.",
        "A second one begins at line {line}.",
        "Paste the one that holds the workload.",
    ),
    Code.PASTED_ALIAS: Sentences(
        "The manifest uses an anchor or alias.",
        "“{value}” at line {line} stands for another part of the text.",
        "Write that part out.",
    ),
    Code.PASTED_LARGE: Sentences(
        "The manifest is too deep or has too many values.",
        "At line {line} it goes past {depth} levels or {nodes} values.",
        "Paste one workload only.",
    ),
    Code.PASTED_KIND: Sentences(
        "“{value}” is no workload that can be changed here.",
        "Known are {known}, in their stable versions.",
        "Paste one of these, or copy the lists from the files by hand.",
    ),
    Code.PASTED_SHAPE: Sentences(
        "The manifest lacks {where}.", "It must be {wanted}.", "Add it, and paste it once more."
    ),
    Code.PASTED_NAMESPACE: Sentences(
        "The manifest belongs to the namespace “{value}”.",
        "The request is for {namespace}, and a pod finds claims of its own namespace only.",
        "Choose that namespace above, or take the line out.",
    ),
    Code.PASTED_GONE: Sentences(
        "The manifest of this link is not here.",
        "It is kept for the team of the person who pasted it, until that person pasted {kept} others.",
        "Paste it once more.",
    ),
    Code.GUEST: Sentences(
        "{username} can't ask for GPUs yet.",
        "You are a member of no team, and namespaces belong to teams.",
        "Ask the lead of your team to add you under this name.",
    ),
    Code.FORM_KEY: Sentences(
        "The form came without its number.",
        "Each form has one, so that pressing Create twice never makes two objects.",
        "Look at the preview again and press Create once more: the form below has a new number.",
    ),
    Code.FORM_USED: Sentences(
        "This form was used before.",
        "Somebody else created from the same link, or it was used with other values.",
        "Look at the preview again and press Create once more: the form below has a new number.",
    ),
    Code.FORM_CHANGED: Sentences(
        "Nothing was created.",
        "The file for {name} is not the one you last saw; the difference is below.",
        "Read it, and press Create if it is what you want.",
    ),
    Code.FORM_FILES_ONLY: Sentences(
        "Nothing was created.",
        "{name} asks by an extended resource, which a pod does by itself: there is no object to be made beforehand.",
        "Download the files and apply them with kubectl.",
    ),
    Code.CLUSTER_LACKS: Sentences(
        "This cluster can't do that.",
        "{reason}",
        "Leave it out, or ask an administrator of the cluster to turn that on.",
    ),
    Code.CLUSTER_SILENT: Sentences(
        "Nothing was created or deleted.",
        "The cluster does not answer: {upstream}",
        "Try again in a while. The files can be previewed and downloaded all the same.",
    ),
    Code.CLUSTER_BUSY: Sentences(
        "Nothing was created or deleted.",
        "The API server can't answer now: “{upstream}”",
        "Try again in a minute.",
    ),
    Code.NAME_TAKEN: Sentences(
        "{name} exists in {namespace} already.",
        "The API server says: “{upstream}”",
        "Choose another name, or delete the old one first.",
    ),
    Code.FORBIDDEN: Sentences(
        "Kubernetes does not let you do this.",
        "The API server says: “{upstream}”",
        "Ask an administrator for the right. It can be checked with: {command}",
    ),
    Code.OVER_QUOTA: Sentences(
        "A quota of {namespace} is full.",
        "The API server says: “{upstream}”",
        "Delete what is no longer needed, or ask an administrator for a larger quota.",
    ),
    Code.DENIED: Sentences(
        "A policy of the cluster refused this.",
        "The API server says: “{upstream}”",
        "Change what the policy names, or ask an administrator about it.",
    ),
    Code.INVALID: Sentences(
        "The API server does not accept the file.",
        "It says: “{upstream}”",
        "Change the field that it names. If the form can't, show this to an administrator.",
    ),
    Code.PORTAL_FORBIDDEN: Sentences(
        "The portal may not act in your name.",
        "The API server says: “{upstream}”",
        "Show this to an administrator: the portal's own right to impersonate is missing.",
    ),
    Code.UNTRIED: Sentences(
        "The {kind} was not tried.",
        "The portal may not try one in your name. The API server says: “{upstream}”",
        "Try it yourself: {command}. An administrator can let the portal do it: web.tryWorkloads in the chart.",
    ),
    Code.NOT_YOURS: Sentences(
        "{name} can't be deleted by you.",
        "{author} asked for it, and a request is taken back by the person who made it.",
        "Ask {author}, or delete it with kubectl if your role allows it.",
    ),
    Code.NOT_THERE: Sentences(
        "There is nothing to delete for {name}.",
        "The request is in the state “{state}”.",
        "If something of that name exists, it was made in another way: use kubectl.",
    ),
    Code.REPLACED: Sentences(
        "{name} in {namespace} was not deleted.",
        "It is no longer the one of this request: another one was made under the same name.",
        "Look at it first; delete it with kubectl if it should go.",
    ),
    Code.SELECTOR_UNFIT: Sentences(
        "Selector {number} can't be used.",
        "The API server would refuse it: {error}",
        "Change it; the check below says what it matches.",
    ),
    Code.CONFIG_SHAPE: Sentences(
        "The configuration can't be read.",
        "It is JSON, a list as in a DeviceClass: {error}",
        "Correct it, or leave it empty.",
    ),
    Code.DEVICE_CLASS_TAKEN: Sentences(
        "The DeviceClass {name} exists already and does not belong to this class.",
        "A class that makes its own DeviceClass gives it its own name, and one that others use is never taken over.",
        "Choose another name, or let the class name the existing DeviceClass.",
    ),
    Code.GPU_CLASS_EXISTS: Sentences(
        "A class {name} exists already.",
        "The API server says: “{upstream}”",
        "Choose another name, or change the class that exists.",
    ),
    Code.GPU_CLASS_CHANGED: Sentences(
        "Nothing was stored: {name} was changed while you looked at it.",
        "The API server says: “{upstream}”",
        "Open it again and repeat your change.",
    ),
    Code.GPU_CLASS_NOT_THERE: Sentences(
        "There is no {name} to be changed.",
        "The API server says: “{upstream}”",
        "If the cluster does not know the kind GPUClass, apply the files in the chart's folder crds first.",
    ),
}


def say(refusal: Refusal) -> Sentences:
    """What a person reads for this refusal."""
    return CATALOGUE[refusal.code].filled(dict(refusal.facts))
