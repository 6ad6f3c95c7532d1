"""Words that the patterns know: relatives, animals, conditions, callings, languages, dates. Each an alternation."""

from __future__ import annotations

PARTNER = (
    r"wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|spouse|better half|significant other|ex(?:-wife|-husband)?"
)
RELATIVE = (
    rf"(?:(?:older|younger|elder|oldest|youngest|eldest|middle|little|big|baby|twin|late)\s+)?"
    rf"(?:{PARTNER}|mom|mum|mama|mother|dad|father|papa|parents|son|daughter|sons|daughters|kids?|child|children"
    rf"|toddler"
    r"|brother|sister|brothers|sisters|siblings?|twins?|(?:grand|great-grand|step|god)(?:ma|mother|pa|father|son"
    r"|daughter|dad|mom|mum|brother|sister|child|children|kids?|parents)|granny|grandpa|grandma|nana|aunt|auntie"
    r"|uncle|cousin|cousins|niece|nephew|(?:mother|father|sister|brother|son|daughter)-in-law|in-laws|family)"
)
ANIMAL = (
    r"(?:dogs?|cats?|pupp(?:y|ies)|pups?|kittens?|kitt(?:y|ies)|hamsters?|guinea pigs?|rabbits?|bunn(?:y|ies)|parrots?"
    r"|budgies?|parakeets?|cockatiels?|birds?|fish(?:es)?|goldfish|turtles?|tortoises?|snakes?|python|lizards?|geckos?"
    r"|iguanas?|horses?|pon(?:y|ies)|chickens?|goats?|ferrets?|gerbils?|hedgehogs?|chinchillas?|tarantulas?"
    r"|labradors?|lab|retrievers?|poodles?|beagles?|bulldogs?|corgis?|husk(?:y|ies)|dachshunds?|terriers?|shepherds?"
    r"|chihuahuas?|collies?|pugs?|tabb(?:y|ies)|siamese|axolotls?|rats?|mice|pigs?|pet rock)"
)
CONDITION = (
    r"(?:(?:type\s*(?:1|2|i|ii|one|two)|breast|lung|prostate|skin|colon|chronic|severe|mild|early|stage\s*\w{1,4}"
    r"|high|low|rheumatoid|celiac|coeliac|crohn's|lyme|kidney|liver|heart|lactose|gluten|nut|food|pollen|late|bad"
    r"|clinical|seasonal|generali[sz]ed|social|autoimmune|bipolar|thyroid|back|knee|sleep|motion|panic|an?)[\s-]+){0,3}"
    r"(?:diabetes|cancer|tumou?r|leuk(?:a)?emia|lymphoma|asthma|copd|bronchitis|pneumonia|flu|covid(?:-19)?|dementia"
    r"|alzheimer's|parkinson's|epilepsy|seizures|migraines?|depression|anxiety|ptsd|adhd|autism|dyslexia|arthritis"
    r"|osteoporosis|hypertension|blood pressure|cholesterol|disease|disorder|syndrome|intolerance|celiac|endometriosis"
    r"|pcos|eczema|psoriasis|insomnia|vertigo|fibromyalgia|lupus|multiple sclerosis|ms|als|hiv|hepatitis|an[a]?emia"
    r"|tinnitus|glaucoma|sciatica|scoliosis|apn[o]?ea|hypothyroidism|hyperthyroidism|hashimoto's|heart attack|stroke"
    r"|heart condition|heart failure|health condition|medical condition|condition|infection|injury|concussion"
    r"|sickness|attacks|pain|problems with (?:his|her|their|my) \w{1,15})"
)
CALLING = (
    r"(?:nurse|teacher|engineer|developer|programmer|doctor|physician|surgeon|dentist|lawyer|attorney|paralegal"
    r"|accountant|architect|designer|artist|musician|writer|author|journalist|editor|photographer|chef|cook|baker"
    r"|waiter|waitress|bartender|barista|mechanic|electrician|plumber|carpenter|welder|pilot|flight attendant"
    r"|firefighter|police officer|paramedic|soldier|veterinarian|vet|pharmacist|therapist|psychologist|psychiatrist"
    r"|social worker|librarian|scientist|researcher|professor|lecturer|analyst|consultant|manager|director|producer"
    r"|entrepreneur|freelancer|contractor|realtor|real estate agent|salesman|salesperson|cashier|clerk|secretary"
    r"|assistant|receptionist|administrator|technician|technologist|farmer|gardener|florist|hairdresser|barber|stylist"
    r"|makeup artist|model|actor|actress|dancer|singer|filmmaker|translator|interpreter|statistician|economist"
    r"|biologist|chemist|physicist|mathematician|geologist|astronomer|historian|coach|personal trainer|yoga instructor"
    r"|instructor|tutor|judge|banker|trader|broker|recruiter|marketer|copywriter|blogger|streamer|youtuber"
    r"|truck driver|bus driver|taxi driver|delivery driver|janitor|cleaner|nanny|babysitter|midwife|physiotherapist"
    r"|optometrist|radiologist|cardiologist|pediatrician|anesthesiologist|postman|mailman|data scientist|product owner"
    r"|project manager|devops|sysadmin|ceo|cto|cfo|founder|co-founder|investor|pastor|priest|diplomat|politician"
    r"|postdoc|stay-at-home (?:mom|mum|dad|parent))"
)
LANGUAGE = (
    r"(?:English|French|German|Spanish|Italian|Portuguese|Dutch|Swedish|Norwegian|Danish|Finnish|Icelandic|Polish|Czech"
    r"|Slovak|Hungarian|Romanian|Bulgarian|Greek|Turkish|Russian|Ukrainian|Arabic|Hebrew|Persian|Farsi|Hindi|Urdu"
    r"|Bengali|Punjabi|Tamil|Telugu|Marathi|Gujarati|Chinese|Mandarin|Cantonese|Japanese|Korean|Vietnamese|Thai|Malay"
    r"|Indonesian|Tagalog|Filipino|Swahili|Zulu|Xhosa|Afrikaans|Amharic|Hausa|Yoruba|Igbo|Catalan|Basque|Galician"
    r"|Welsh|Irish|Gaelic|Scots|Latin|Esperanto|Croatian|Serbian|Bosnian|Slovenian|Albanian|Macedonian|Lithuanian"
    r"|Latvian|Estonian|Georgian|Armenian|Nepali|Sinhala|Burmese|Khmer|Lao|Mongolian|Kazakh|Uzbek|sign language|ASL)"
)
DIET = (
    r"(?:(?:strict|raw|lifelong|mostly|avid|committed|an?)\s+){0,2}(?:vegan|vegetarian|pescatarian|pescetarian"
    r"|flexitarian|lactose[- ]intolerant|gluten[- ]intolerant|gluten[- ]free|dairy[- ]free|keto|kosher|halal"
    r"|teetotaler|teetotal|nondrinker|non-drinker|c[o]?eliac)"
)
MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
DAY = r"\d{1,2}(?:st|nd|rd|th)?"
DATE = (
    rf"(?:(?:the\s+)?{DAY}(?:\s+of)?\s+{MONTH}(?:,?\s+\d{{4}})?|{MONTH}\s+(?:the\s+)?{DAY}(?:,?\s+\d{{4}})?"
    r"|\d{4}-\d{2}-\d{2}|\d{1,2}[/.]\d{1,2}[/.](?:\d{4}|\d{2}))"
)
WEEKDAY = r"(?:(?:next|this|coming)\s+)?(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
WHEN = rf"(?:{DATE}|{WEEKDAY}(?:,?\s+{DATE})?|(?:early|mid|late)?[- ]?{MONTH}(?:\s+\d{{4}})?(?!\w))"
